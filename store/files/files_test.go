package files_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"example.com/providerd/store/files"
)

func newDraft(t *testing.T, path string, content []byte) *files.Draft {
	t.Helper()
	draft, err := files.CreateDraftOver(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := draft.Write(content); err != nil {
		t.Fatal(err)
	}
	return draft
}

func expectNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("found %v, want %v", names, want)
	}
}

// version returns content whose length and letter differ from those of another version.
func version(n int) []byte { return bytes.Repeat([]byte{byte('a' + n)}, (n+1)<<14) }

func expectContent(t *testing.T, path string, want []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(content, want) {
		t.Errorf("%d bytes, want %d, %v", len(content), len(want), err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("file is %v, %v", info, err)
	}
}

// naming is a way to give a draft its name.
type naming struct {
	name string
	// exists is set if a file already has the name.
	exists bool
	run    func(draft *files.Draft, kept string) error
}

func namings() []naming {
	return []naming{
		{"Publish", false, func(draft *files.Draft, _ string) error { return draft.Publish() }},
		{"Replace", true, (*files.Draft).Replace},
	}
}

// begin returns a draft in a directory of its own, and the path under which the existing file is kept.
func (n naming) begin(t *testing.T) (draft *files.Draft, kept string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if n.exists {
		if err := os.WriteFile(path, version(5), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newDraft(t, path, version(1)), filepath.Join(dir, "kept")
}

// A draft that cannot be synced gets no name. If the directory cannot be synced, an error is returned, and an existing
// file still has its name.
func TestSyncErrors(t *testing.T) {
	t.Parallel()
	for _, test := range namings() {
		for _, which := range []failing{syncOfDraft, syncOfOthers} {
			draft, kept := test.begin(t)
			if err := test.runWithout(draft, kept, which); !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: error is %v, want %v", test.name, err, syscall.EIO)
			}
			if err := draft.Cleanup(); err != nil {
				t.Error(err)
			}
			if test.exists {
				expectContent(t, filepath.Join(filepath.Dir(kept), "file"), version(5))
				expectNames(t, filepath.Dir(kept), "file")
			} else if which == syncOfDraft {
				expectNames(t, filepath.Dir(kept))
			}
		}
	}
}

// failing selects the calls of fsync that fail.
type failing int

const (
	syncOfDraft failing = iota
	syncOfOthers
)

// runWithout names the draft in a thread in which some fsync calls fail, and which ends with it.
func (n naming) runWithout(draft *files.Draft, kept string, which failing) error {
	outcome := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := which.filter(draft.Fd()); err != nil {
			outcome <- err
			return
		}
		outcome <- n.run(draft, kept)
	}()
	return <-outcome
}

// filter makes fsync fail in this thread.
func (f failing) filter(draft uintptr) error {
	const (
		allow, fail = 0x7fff0000, 0x00050000 | uint32(syscall.EIO)
		// Offsets in seccomp_data of the system call number and, on a little-endian machine, the first argument.
		number, argument = 0, 16

		setNoNewPrivileges, setFilter, filterMode = 38, 22, 2
	)
	ofDraft, ofOthers := uint32(allow), fail
	if f == syncOfDraft {
		ofDraft, ofOthers = fail, allow
	}
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: number},
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: 4, K: syscall.SYS_FSYNC},
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: argument},
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jf: 1, K: uint32(draft)},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: ofDraft},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: ofOthers},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: allow},
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivileges, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setFilter, filterMode, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
