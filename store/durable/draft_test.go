package durable_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/store/durable"
)

func newDraft(t *testing.T, path string, content []byte) *durable.Draft {
	t.Helper()
	draft, err := durable.CreateDraft(path)
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
	if err := draft.Close(); err != nil {
		t.Error(err)
	}
	expectContent(t, path, version(5))
	expectNames(t, dir, "file")
}

// Many drafts are created in one directory while others remove abandoned ones.
func TestActiveDraftsAreNotRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var group errgroup.Group
	for writer := range 8 {
		group.Go(func() error {
			for number := range 100 {
				draft, err := durable.CreateDraft(filepath.Join(dir, fmt.Sprint(writer, "-", number)))
				if err != nil {
					return err
				}
				isAny := func(string) bool { return true }
				err = errors.Join(durable.RemoveAbandoned(dir, isAny), draft.Publish(), draft.Close())
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
