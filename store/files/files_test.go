package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"example.com/providerd/store/files"
	"example.com/providerd/store/storetest/processtest"
)

// If the draft or the directory cannot be synced, an error is returned, and an existing file still has the name alone.
func TestSyncErrors(t *testing.T) {
	t.Parallel()
	for _, isTaken := range []bool{false, true} {
		for _, isOfDraft := range []bool{true, false} {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			if isTaken {
				processtest.Must(t, os.WriteFile(path, []byte("old"), 0o600))
			}
			draft, err := files.CreateDraftOver(path)
			processtest.Must(t, err)
			name := draft.Publish
			if isTaken {
				name = func() error { return draft.Replace(filepath.Join(dir, "kept")) }
			}
			_, err = draft.WriteString("new")
			if err := errors.Join(err, withoutSync(draft, isOfDraft, name)); !errors.Is(err, syscall.EIO) {
				t.Errorf("name taken: %v, draft: %v: error is %v, want %v", isTaken, isOfDraft, err, syscall.EIO)
			}
			if err := draft.Cleanup(); err != nil {
				t.Error(err)
			}
			var want []string
			if isTaken {
				want = []string{path}
			}
			left, err := filepath.Glob(dir + "/*")
			if content, _ := os.ReadFile(path); err != nil || !slices.Equal(left, want) || isTaken && string(content) != "old" {
				t.Errorf("name taken: %v, draft: %v: found %v with %q, %v", isTaken, isOfDraft, left, content, err)
			}
		}
	}
}

// withoutSync calls name in a thread, which ends with it, in which fsync fails for the draft, or for all other files.
func withoutSync(draft *files.Draft, isOfDraft bool, name func() error) error {
	outcome := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := filterSync(draft.Fd(), isOfDraft); err != nil {
			outcome <- err
			return
		}
		outcome <- name()
	}()
	return <-outcome
}

// filterSync makes fsync fail in this thread.
func filterSync(draft uintptr, isOfDraft bool) error {
	const (
		allow, fail = 0x7fff0000, 0x00050000 | uint32(syscall.EIO)
		// Offsets in seccomp_data of the system call number and, on a little-endian machine, the first argument.
		number, argument = 0, 16

		setNoNewPrivileges, setFilter, filterMode = 38, 22, 2
	)
	ofDraft, ofOthers := uint32(allow), fail
	if isOfDraft {
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
