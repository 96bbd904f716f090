package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store/durable"
)

// TestResolve runs in a folder that is behind a symbolic link, with a file, and links to it, to none and to themselves.
func TestResolve(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, "folder")
	if err := errors.Join(
		os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "file"), nil, 0o600),
		os.Symlink("folder", filepath.Join(root, "link")), os.Symlink("file", filepath.Join(folder, "to-file")),
		os.Symlink("../link/new", filepath.Join(folder, "to-none")), os.Symlink("/nowhere/x", filepath.Join(folder, "away")),
		os.Symlink("loop", filepath.Join(folder, "loop")),
	); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join(root, "link"))
	for path, want := range map[string]string{
		"file": folder + "/file", "to-file": folder + "/file", root + "/link/file": folder + "/file",
		"new": folder + "/new", "to-none": folder + "/new", "to-none/x": folder + "/new/x",
		"./a/../new": folder + "/new", "../link/new/": folder + "/new",
		"a/b": folder + "/a/b", "away": "/nowhere/x", "/": "/", "/nowhere/../x": "/x", "loop": folder + "/loop", "": folder,
	} {
		if got := durable.Resolve(path); got != want {
			t.Errorf("%q is %s, want %s", path, got, want)
		}
	}
}

func TestWhatIsFree(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	link, file := filepath.Join(folder, "link"), filepath.Join(folder, "file")
	if err := errors.Join(os.Symlink("nowhere", link), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, file, folder} {
		if err := durable.CheckNotExist(path); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := durable.CheckNotExist(filepath.Join(folder, "new")); err != nil {
		t.Error(err)
	}
	if err := durable.CheckNotExist(filepath.Join(file, "new")); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("below a file: %v", err)
	}
}
