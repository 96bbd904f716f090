package files_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store/files"
)

func newDraft(t *testing.T, path string, content []byte) *files.Draft {
	t.Helper()
	draft, err := files.CreateDraftOver(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := draft.Write(content); err != nil {
		t.Fatal(err)
	}
	return draft
}

func expectNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("found %v, want %v", names, want)
	}
}

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
}

// Publish replaces nothing, even if the name was taken while the draft was written.
func TestPublishReplacesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	draft := newDraft(t, path, version(1))
	if err := os.WriteFile(path, version(5), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := draft.Publish(); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v", err)
	}
	if err := draft.Cleanup(); err != nil {
		t.Error(err)
	}
	expectContent(t, path, version(5))
	expectNames(t, dir, "file")
}
