package files_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"example.com/providerd/store/files"
	"example.com/providerd/store/storetest/processtest"
)

// These users need not have accounts.
const (
	oneUser     = 1234
	anotherUser = 1235
	// groupOffset is added to a user's number to get the group.
	groupOffset = 1000
)

// chown gives a file to a user and the user's group.
func chown(t *testing.T, path string, user int) {
	t.Helper()
	if err := os.Lchown(path, user, user+groupOffset); err != nil {
		t.Fatal(err)
	}
}

// newDir creates a directory of a user.
func newDir(t *testing.T, mode os.FileMode, user int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dir")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)); err != nil {
		t.Fatal(err)
	}
	chown(t, dir, user)
	return dir
}

func writeAs(t *testing.T, path string, user int) {
	t.Helper()
	if err := os.WriteFile(path, version(2), 0o600); err != nil {
		t.Fatal(err)
	}
	chown(t, path, user)
}

// A file that root writes belongs to the owner of the file it replaces, or else of the directory, unless anybody could
// have put that file there.
func TestRootChownsFiles(t *testing.T) {
	t.Parallel()
	processtest.NeedRoot(t)
	for name, test := range map[string]struct {
		mode  os.FileMode
		place func(t *testing.T, path string)
		want  uint32
	}{
		"new":      {0o700, func(*testing.T, string) {}, oneUser},
		"replaced": {0o770, func(t *testing.T, path string) { t.Helper(); writeAs(t, path, anotherUser) }, anotherUser},
		"replaced link": {0o700, func(t *testing.T, path string) {
			t.Helper()
			writeAs(t, path+".target", anotherUser)
			if err := os.Symlink(path+".target", path); err != nil {
				t.Fatal(err)
			}
			chown(t, path, anotherUser)
		}, oneUser},
		"planted":        {0o777 | os.ModeSticky, func(t *testing.T, path string) { t.Helper(); writeAs(t, path, anotherUser) }, 0},
		"new beside all": {0o777, func(*testing.T, string) {}, 0},
	} {
		path := filepath.Join(newDir(t, test.mode, oneUser), "file")
		test.place(t, path)
		owner, err := files.OwnerFor(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeFor(path, owner); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		expectContent(t, path, version(1))
		group := test.want
		if group != 0 {
			group += groupOffset
		}
		processtest.ExpectOwner(t, path, test.want, group)
	}
}

// Without CAP_CHOWN, root still writes new files, but does not replace those of other users.
func TestRootWithoutChownCapability(t *testing.T) {
	t.Parallel()
	processtest.NeedRoot(t)
	dir := newDir(t, 0o700, oneUser)
	taken := filepath.Join(dir, "taken")
	writeAs(t, taken, oneUser)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	writeOver := func(path string) error {
		linked := filepath.Join(t.TempDir(), "write-over")
		command := exec.CommandContext(t.Context(), "setpriv", "--bounding-set=-chown", "--inh-caps=-chown", linked, path)
		return errors.Join(os.Symlink(program, linked), command.Run())
	}
	if err := writeOver(taken); err == nil {
		t.Error("a file of another user was replaced")
	}
	expectContent(t, taken, version(2))
	processtest.ExpectOwner(t, taken, oneUser, oneUser+groupOffset)
	fresh := filepath.Join(dir, "fresh")
	if err := writeOver(fresh); err != nil {
		t.Error(err)
	}
	expectContent(t, fresh, version(1))
	processtest.ExpectOwner(t, fresh, 0, 0)
}
