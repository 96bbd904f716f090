package seal_test

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store/seal"
)

// canary is in every secret and in every invalid file, and nowhere else.
const canary = "canary-7e1f"

// newRing creates a keyset file in a new directory.
func newRing(t *testing.T) (ring *seal.Keyring, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keyset.json")
	ring, err := seal.OpenOrCreateKeyring(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return ring, path
}

func open(t testing.TB, path string) *seal.Keyring {
	t.Helper()
	ring, err := seal.OpenKeyring(path)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func current(t *testing.T, ring *seal.Keyring) *seal.Keys {
	t.Helper()
	keys, err := ring.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// writing writes a changed keyset.
func writing(_ *seal.Keys, write func() error) error { return write() }

// rotate adds a key to the file.
func rotate(t *testing.T, path string) {
	t.Helper()
	if err := open(t, path).Change(t.Context(), seal.RotateKey, writing); err != nil {
		t.Fatal(err)
	}
}

// newKeys returns the keys of a new keyset, then those after each rotation.
func newKeys(t *testing.T, rotations int) []*seal.Keys {
	t.Helper()
	ring, path := newRing(t)
	keys := []*seal.Keys{current(t, ring)}
	for range rotations {
		rotate(t, path)
		keys = append(keys, current(t, ring))
	}
	return keys
}

func read(t *testing.T, path string) string {
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
