package durable_test

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

	"example.com/providerd/store/durable"
)

// naming is a way in which a draft gets its name.
type naming struct {
	name string
	// isThere tells that a file has the name before.
	isThere bool
	run     func(draft *durable.Draft, kept string) error
	// names are those that are changed, in their order.
	names []string
}

func namings() []naming {
	return []naming{
		{"Publish", false, func(draft *durable.Draft, _ string) error { return draft.Publish() }, []string{"file"}},
		{"Replace", true, (*durable.Draft).Replace, []string{"kept", "file"}},
	}
}

// begin returns the draft of a file in a directory of its own, and the path of the file that is kept.
func (n naming) begin(t *testing.T) (draft *durable.Draft, kept string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if n.isThere {
		if err := os.WriteFile(path, version(5), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return newDraft(t, path, version(1)), filepath.Join(dir, "kept")
}

// watch returns a function that tells which names in a directory were made or opened since, and between them "", each time
// that the directory itself was opened, without which nobody syncs it.
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

// A name outlives a crash once its directory is synced: before another name is changed, and before the caller is told.
func TestFolderIsSyncedAfterEachName(t *testing.T) {
	t.Parallel()
	for _, one := range namings() {
		draft, kept := one.begin(t)
		seen := watch(t, filepath.Dir(kept))
		if err := errors.Join(one.run(draft, kept), draft.Close()); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, name := range one.names {
			want = append(want, name, "")
		}
		if got := seen(); !slices.Equal(got, want) {
			t.Errorf("%s: seen is %q, want %q", one.name, got, want)
		}
	}
}

// A draft that cannot be synced gets no name. A directory that cannot be synced is told, and then the file that was there
// still has its name, where it was to be kept.
func TestWhatCannotBeSynced(t *testing.T) {
	t.Parallel()
	for _, one := range namings() {
		for _, which := range []failing{syncOfDraft, syncOfOthers} {
			draft, kept := one.begin(t)
			if err := one.runWithout(draft, kept, which); !errors.Is(err, syscall.EIO) {
				t.Errorf("%s: error is %v, want %v", one.name, err, syscall.EIO)
			}
			if err := draft.Close(); err != nil {
				t.Error(err)
			}
			if one.isThere {
				expectContent(t, filepath.Join(filepath.Dir(kept), "file"), version(5))
				expectNames(t, filepath.Dir(kept), "file")
			} else if which == syncOfDraft {
				expectNames(t, filepath.Dir(kept))
			}
		}
	}
}

// failing says which calls of fsync fail.
type failing int

const (
	syncOfDraft failing = iota
	syncOfOthers
)

// runWithout gives the draft its name in a thread that cannot sync some files, and that ends with it.
func (n naming) runWithout(draft *durable.Draft, kept string, which failing) error {
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
		// Where a filter finds the number of the system call and, on a little-endian machine, the first argument.
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
