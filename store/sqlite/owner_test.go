package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// A user who plants a link to a file of root as their database does not get that file.
func TestRootChownsOnlyNewFiles(t *testing.T) {
	t.Parallel()
	processtest.NeedRoot(t)
	const someUser, someGroup = 1234, 2234
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	link, path := filepath.Join(dir, "link.db"), filepath.Join(dir, "new.db")
	if err := errors.Join(os.Chown(dir, someUser, someGroup), os.WriteFile(elsewhere, nil, 0o600),
		os.Symlink(elsewhere, link), create(t, link), create(t, path)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]uint32{elsewhere: 0, path: someUser} {
		info, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}
		if native, ok := info.Sys().(*syscall.Stat_t); !ok || native.Uid != want || info.Size() == 0 {
			t.Errorf("%s belongs to %d and has %d bytes", file, native.Uid, info.Size())
		}
	}
}
