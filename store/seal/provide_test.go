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

func TestConcurrentOpenOrCreateGivesOneKeyset(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keyset.json")
	const programs = 16
	proofs := make([]seal.Proof, programs)
	var group sync.WaitGroup
	for i := range programs {
		group.Go(func() {
			ring, err := seal.OpenOrCreateKeyring(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			keys, err := ring.Current(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if proofs[i], err = keys.Prove(); err != nil {
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
	if err != nil || len(entries) != 1 {
		t.Fatalf("the directory contains %v, %v", entries, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode() != 0o600 {
		t.Errorf("keyset is %v, %v", info, err)
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
