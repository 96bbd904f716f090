package files_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store/files"
)

// TestResolve runs in a directory behind a symbolic link, with a file and with links to it, to nothing and to
// themselves.
func TestResolve(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "dir")
	if err := errors.Join(
		os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.Symlink("dir", filepath.Join(root, "link")), os.Symlink("file", filepath.Join(dir, "to-file")),
		os.Symlink("../link/new", filepath.Join(dir, "to-none")), os.Symlink("/nowhere/x", filepath.Join(dir, "away")),
		os.Symlink("loop", filepath.Join(dir, "loop")),
	); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "link"))
	for path, want := range map[string]string{
		"file": dir + "/file", "to-file": dir + "/file", root + "/link/file": dir + "/file",
		"new": dir + "/new", "to-none": dir + "/new", "to-none/x": dir + "/new/x",
		"./a/../new": dir + "/new", "../link/new/": dir + "/new",
		"a/b": dir + "/a/b", "away": "/nowhere/x", "/": "/", "/nowhere/../x": "/x", "loop": dir + "/loop", "": dir,
	} {
		if got := files.Resolve(path); got != want {
			t.Errorf("%q is %s, want %s", path, got, want)
		}
	}
}

func TestDraftOfWhatExists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link, taken := filepath.Join(dir, "link"), filepath.Join(dir, "file")
	if err := errors.Join(os.Symlink("nowhere", link), os.WriteFile(taken, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, taken, dir} {
		if err := draftOf(path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := draftOf(filepath.Join(dir, "new")); err != nil {
		t.Error(err)
	}
	if err := draftOf(filepath.Join(taken, "new")); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("below a file: %v", err)
	}
}

func draftOf(path string) error {
	draft, err := files.CreateDraft(path)
	if err != nil {
		return err
	}
	return draft.Cleanup()
}
