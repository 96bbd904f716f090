package seal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"example.com/providerd/store/seal"
)

// Programs that start concurrently for the first time all get the same keyset, which only its owner can read.
func TestConcurrentOpenOrCreateGivesOneKeyset(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keyset.json")
	const programs = 16
	proofs := make([]seal.Proof, programs)
	var group sync.WaitGroup
	for i := range programs {
		group.Go(func() {
			ring, err := seal.OpenOrCreateKeyring(t.Context(), path)
			if err == nil {
				var keys *seal.Keys
				if keys, err = ring.Current(t.Context()); err == nil {
					proofs[i], err = keys.Prove()
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	keys := current(t, open(t, path))
	for i, proof := range proofs {
		if !keys.Satisfies(proof) {
			t.Errorf("program %d has other keys than the file", i)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if info, statErr := os.Stat(path); err != nil || statErr != nil || len(entries) != 1 || info.Mode() != 0o600 {
		t.Errorf("the directory contains %v, %v, %v", entries, err, statErr)
	}
}

// The unfinished file of a killed program is removed, whether or not the keyset exists. If it cannot be removed, no
// keyset is created.
func TestOpenOrCreateRemovesUnfinished(t *testing.T) {
	t.Parallel()
	_, existing := newRing(t)
	for _, path := range []string{existing, filepath.Join(t.TempDir(), "keyset.json")} {
		unfinished := path + ".unfinished"
		replace(t, unfinished, canary)
		if _, err := seal.OpenOrCreateKeyring(t.Context(), path); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(unfinished); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("unfinished file: %v", err)
		}
	}
	blocked := filepath.Join(t.TempDir(), "keyset.json")
	if err := os.MkdirAll(blocked+".unfinished/x", 0o700); err != nil {
		t.Fatal(err)
	}
	if ring, err := seal.OpenOrCreateKeyring(t.Context(), blocked); ring != nil || !errors.Is(err, fs.ErrExist) {
		t.Errorf("error is %v, want ErrExist", err)
	}
}
