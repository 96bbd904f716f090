package seal_test

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store/seal"
)

// canary is in every secret and in every invalid file, and nowhere else.
const canary = "canary-7e1f"

// newFile creates a keyset file in a new directory.
func newFile(t testing.TB) (master *seal.MasterKeys, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keyset.json")
	master, err := seal.ReadOrCreateMasterKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return master, path
}

// newKeys returns new data keys, then those after each rotation.
func newKeys(t *testing.T, rotations int) []*seal.Keys {
	t.Helper()
	next, err := seal.NewKeys()
	keys := []*seal.Keys{next}
	for i := 0; i < rotations && err == nil; i++ {
		next, err = next.Rotated()
		keys = append(keys, next)
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// replace writes a file at a path, whatever is there.
func replace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
