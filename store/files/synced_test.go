package files_test

import (
	"bytes"
	"encoding/binary"
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

// naming is a way to give a draft its name.
type naming struct {
	name string
	// exists is set if a file already has the name.
	exists bool
	run    func(draft *files.Draft, kept string) error
	// names are those that change, in order.
	names []string
}

func namings() []naming {
	return []naming{
		{"Publish", false, func(draft *files.Draft, _ string) error { return draft.Publish() }, []string{"file"}},
		{"Replace", true, (*files.Draft).Replace, []string{"kept", "file"}},
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

// watch returns a function that returns the names created or opened in a directory since, and "" for each time that the
// directory itself was opened to sync it.
func watch(t *testing.T, dir string) func() []string {
	t.Helper()
	queue, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(queue) })
	const events = syscall.IN_OPEN | syscall.IN_CREATE | syscall.IN_MOVED_TO
	if _, err := syscall.InotifyAddWatch(queue, dir, events); err != nil {
		t.Fatal(err)
	}
	return func() (seen []string) {
		buffer := make([]byte, 64<<10)
		length, err := syscall.Read(queue, buffer)
		if err != nil {
			t.Fatal(err)
		}
		for rest := buffer[:length]; len(rest) > 0; {
			end := syscall.SizeofInotifyEvent + binary.NativeEndian.Uint32(rest[12:])
			seen = append(seen, string(bytes.TrimRight(rest[syscall.SizeofInotifyEvent:end], "\x00")))
			rest = rest[end:]
		}
		return seen
	}
}

// The directory is synced after each change of a name, before the next one and before the caller learns of it.
func TestDirectoryIsSyncedAfterEachName(t *testing.T) {
	t.Parallel()
	for _, test := range namings() {
		draft, kept := test.begin(t)
		seen := watch(t, filepath.Dir(kept))
		if err := errors.Join(test.run(draft, kept), draft.Cleanup()); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, name := range test.names {
			want = append(want, name, "")
		}
		if got := seen(); !slices.Equal(got, want) {
			t.Errorf("%s: saw %q, want %q", test.name, got, want)
		}
	}
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
