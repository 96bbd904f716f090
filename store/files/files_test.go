package files_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

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
			if err := errors.Join(err, withoutSync(draft.Fd(), isOfDraft, name)); !errors.Is(err, syscall.EIO) {
				t.Errorf("name taken: %v, draft: %v: error is %v, want %v", isTaken, isOfDraft, err, syscall.EIO)
			}
			processtest.Must(t, draft.Cleanup())
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

// A new directory is synced in its parent; if that fails, it is removed, and the error names the parent.
func TestNewDirectoriesAreSynced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const noDraft = math.MaxUint32
	for _, c := range []struct{ path, parent, created string }{
		{"one", ".", "one"}, {"one/two/three", ".", "one"}, {"there/one/two", "there", "there/one"}, {"there", "", ""},
	} {
		processtest.Must(t, os.MkdirAll(filepath.Join(dir, "there"), 0o700))
		path := filepath.Join(dir, c.path)
		err := withoutSync(noDraft, false, func() error { return files.CreateDir(path) })
		failed, _ := errors.AsType[*fs.PathError](err)
		switch {
		case c.parent == "" && err != nil:
			t.Errorf("%s exists: error is %v", c.path, err)
		case c.parent != "" && (!errors.Is(err, syscall.EIO) || failed.Path != filepath.Join(dir, c.parent)):
			t.Errorf("create %s: error is %v, want one about %s", c.path, err, c.parent)
		}
		if _, err := os.Stat(filepath.Join(dir, c.created)); c.parent != "" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("create %s: %s was left, %v", c.path, c.created, err)
		}
		processtest.Must(t, files.CreateDir(path))
		if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s is %v, %v", c.path, info, err)
		}
		processtest.Must(t, os.RemoveAll(filepath.Join(dir, "one")))
	}
}

// On a file system without hard links, such as exFAT, an error says so, and an existing file keeps its name and content.
func TestFileSystemWithoutLinks(t *testing.T) {
	t.Parallel()
	for _, failure := range []syscall.Errno{syscall.EPERM, syscall.ENOTSUP, syscall.ENOSYS} {
		dir := t.TempDir()
		path, kept := filepath.Join(dir, "file"), filepath.Join(dir, "kept")
		for name, publish := range map[string]func(draft *files.Draft) error{
			path: (*files.Draft).Publish,
			kept: func(draft *files.Draft) error { return draft.Replace(kept) },
		} {
			if name == kept {
				processtest.Must(t, os.WriteFile(path, []byte("old"), 0o600))
			}
			draft, err := files.CreateDraftOver(path)
			processtest.Must(t, err)
			err = filtered(append([]unix.SockFilter{
				{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: callNumber},
			}, failing(unix.SYS_LINKAT, failure)...), func() error { return publish(draft) })
			if want := "write " + name + ": its file system has no hard links; use a directory on one that has them"; err == nil || err.Error() != want {
				t.Errorf("%v: error is %v, want %s", failure, err, want)
			}
			processtest.Must(t, draft.Cleanup())
			left, err := filepath.Glob(dir + "/*")
			if want := name == kept; err != nil || (len(left) == 1) != want {
				t.Errorf("%v: found %v, %v", failure, left, err)
			}
			processtest.Must(t, os.RemoveAll(path))
		}
	}
}

// callNumber and firstArgument are offsets in seccomp_data of the system call number and, on a little-endian machine, the
// first argument.
const callNumber, firstArgument = 0, 16

// failing is the end of a filter in which a system call fails.
func failing(call uint32, failure syscall.Errno) []unix.SockFilter {
	return []unix.SockFilter{
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: call},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(failure)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
}

// withoutSync calls name while fsync fails for the draft, or for all other files.
func withoutSync(draft uintptr, isOfDraft bool, name func() error) error {
	ofDraft, ofOthers := uint32(unix.SECCOMP_RET_ALLOW), unix.SECCOMP_RET_ERRNO|uint32(syscall.EIO)
	if isOfDraft {
		ofDraft, ofOthers = ofOthers, ofDraft
	}
	return filtered([]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: callNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 4, K: unix.SYS_FSYNC},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: firstArgument},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: uint32(draft)},
		{Code: unix.BPF_RET | unix.BPF_K, K: ofDraft},
		{Code: unix.BPF_RET | unix.BPF_K, K: ofOthers},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}, name)
}

// filtered calls work in a thread with a filter of system calls, which ends with it.
func filtered(filter []unix.SockFilter, work func() error) error {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	outcome := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER,
			uintptr(unsafe.Pointer(&program)))
		if err != nil || errno != 0 {
			outcome <- errors.Join(err, errno)
			return
		}
		outcome <- work()
	}()
	return <-outcome
}
