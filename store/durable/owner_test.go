package durable_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/providerd/store/durable"
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
// have put that file there. One that replaces nothing belongs to the owner of the directory, whatever is at its path.
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
		owner, err := durable.OwnerFor(path)
		ownerForNew, newErr := durable.OwnerForNew(path)
		if err := errors.Join(err, newErr); err != nil {
			t.Fatal(err)
		}
		wantForNew := min(test.want, oneUser)
		for written, file := range map[string]struct {
			owner durable.Owner
			want  uint32
		}{path: {owner, test.want}, path + ".new": {ownerForNew, wantForNew}} {
			if err := durable.WriteFile(written, version(1), file.owner); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			expectContent(t, written, version(1))
			group := file.want
			if group != 0 {
				group += groupOffset
			}
			processtest.ExpectOwner(t, written, file.want, group)
		}
	}
}

// as starts a program of the tests as another user.
func as(t *testing.T, user uint32, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copied := filepath.Join(dir, name)
	for _, command := range [][]string{{"cp", program, copied}, {"chmod", "755", filepath.Dir(dir), dir, copied}} {
		if output, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command, err, output)
		}
	}
	command := exec.CommandContext(t.Context(), copied, arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user + groupOffset}}
	return command
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

// Drafts that root left in a shared directory do not affect other users, who can neither read nor remove them.
func TestRootDraftsBlockNobody(t *testing.T) {
	t.Parallel()
	processtest.NeedRoot(t)
	dir := newDir(t, 0o777|os.ModeSticky, 0)
	if err := os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755); err != nil {
		t.Fatal(err)
	}
	const unreadable, unremovable = "file.1.unfinished", "file.2.unfinished"
	writeAs(t, filepath.Join(dir, unreadable), 0)
	writeAs(t, filepath.Join(dir, unremovable), 0)
	if err := os.Chmod(filepath.Join(dir, unremovable), 0o644); err != nil {
		t.Fatal(err)
	}
	if output, err := as(t, oneUser, "draft-once", filepath.Join(dir, "file")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	expectNames(t, dir, "file", unreadable, unremovable)
}
