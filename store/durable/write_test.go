package durable_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/durable"
)

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
	if _, err := os.Lstat(path + ".unfinished"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unfinished file: %v", err)
	}
}

// Anything that has the name of the unfinished file is removed, not written to.
func TestLeftoversAreReplaced(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(path, elsewhere string) error{
		"nothing":     func(string, string) error { return nil },
		"longer file": func(path, _ string) error { return os.WriteFile(path, version(9), 0o666) },
		"no mode":     func(path, _ string) error { return os.WriteFile(path, version(9), 0) },
		"link":        func(path, elsewhere string) error { return os.Symlink(elsewhere, path) },
		"hard link":   func(path, elsewhere string) error { return os.Link(elsewhere, path) },
		"FIFO":        func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":   func(path, _ string) error { return os.Mkdir(path, 0o700) },
	} {
		path, elsewhere := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "elsewhere")
		for _, existing := range []string{path, elsewhere} {
			if err := os.WriteFile(existing, version(5), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.Chmod(path, 0o666), leave(path+".unfinished", elsewhere)); err != nil {
			t.Fatal(err)
		}
		if err := durable.WriteFile(path, version(1), durable.Owner{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		expectContent(t, path, version(1))
		expectContent(t, elsewhere, version(5))
	}
}

// A failed write names the file in its error, and leaves nothing behind.
func TestFailedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		place func(path string) error
		want  error
	}{
		"missing directory": {func(path string) error { return os.Remove(filepath.Dir(path)) }, fs.ErrNotExist},
		"file as a directory": {func(path string) error {
			return errors.Join(os.Remove(filepath.Dir(path)), os.WriteFile(filepath.Dir(path), nil, 0o600))
		}, syscall.ENOTDIR},
		"directory as a file": {func(path string) error { return os.MkdirAll(filepath.Join(path, "x"), 0o700) }, fs.ErrExist},
	} {
		path := filepath.Join(t.TempDir(), "dir", "file")
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), test.place(path)); err != nil {
			t.Fatal(err)
		}
		err := durable.WriteFile(path, version(1), durable.Owner{})
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error is %v, want %v with %s", name, err, test.want, path)
		}
		if left, err := filepath.Glob(filepath.Dir(path) + "/*.unfinished"); err != nil || len(left) > 0 {
			t.Errorf("%s: %v is left, %v", name, left, err)
		}
	}
}
