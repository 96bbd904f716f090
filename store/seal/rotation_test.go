package seal_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"example.com/providerd/store/seal"
)

// Concurrent rotations lose no key: each is recorded once, and the file ends up with all. A server that seals meanwhile
// always has keys, and the final keys unseal everything.
func TestConcurrentRotations(t *testing.T) {
	t.Parallel()
	server, path := newRing(t)
	const programs, rotations = 6, 3
	var mutex sync.Mutex
	recorded, sealed := map[uint32]int{}, map[uint32][]byte{}
	use := func(keys *seal.Keys, count int) error {
		ciphertext, err := keys.Seal(seal.NewSecret(canary), seal.Place{})
		mutex.Lock()
		defer mutex.Unlock()
		recorded[keys.PrimaryID()] += count
		sealed[keys.PrimaryID()] = ciphertext
		return err
	}
	record := func(after *seal.Keys, write func() error) error { return errors.Join(use(after, 1), write()) }
	if err := use(current(t, server), 1); err != nil {
		t.Fatal(err)
	}
	rotated := make(chan struct{})
	var rotating, serving sync.WaitGroup
	for i := range programs {
		ring := server
		if i > 0 {
			ring = open(t, path)
		}
		rotating.Go(func() {
			for range rotations {
				if err := ring.Change(t.Context(), seal.RotateKey, record); err != nil {
					t.Error(err)
				}
			}
		})
		serving.Go(func() {
			for isDone := false; !isDone; {
				select {
				case <-rotated:
					isDone = true
				default:
				}
				if keys, err := server.Current(t.Context()); err != nil || use(keys, 0) != nil {
					t.Errorf("seal meanwhile: %v", err)
				}
			}
		})
	}
	rotating.Wait()
	close(rotated)
	serving.Wait()
	if len(recorded) != 1+programs*rotations {
		t.Errorf("%d keys were used, want the first and %d", len(recorded), programs*rotations)
	}
	after := current(t, open(t, path))
	for id, count := range recorded {
		if count != 1 {
			t.Errorf("key %d was recorded %d times", id, count)
		}
		if secret, err := after.Unseal(sealed[id], seal.Place{}); err != nil || secret.Reveal() != canary {
			t.Errorf("the file lacks key %d: %v", id, err)
		}
	}
}

// If the change is not recorded, or the file cannot be written or has changed meanwhile, the error is returned, and the
// file is left as it is.
func TestFailedChangeLeavesFile(t *testing.T) {
	t.Parallel()
	const unchanged = "unchanged"
	errRecord := errors.New("cannot be recorded")
	type interference func(path string, write func() error) error
	fails := func(string, func() error) error { return errRecord }
	for name, test := range map[string]struct {
		retire    bool
		interfere interference
		want      error
		content   string
	}{
		"rotation not recorded": {false, fails, errRecord, unchanged},
		"rotation not written": {false, func(path string, write func() error) error {
			return errors.Join(os.MkdirAll(path+".unfinished/x", 0o700), write())
		}, os.ErrExist, unchanged},
		"rotation without the directory": {false, func(path string, write func() error) error {
			away := filepath.Dir(path) + ".away"
			return errors.Join(os.Rename(filepath.Dir(path), away), write(), os.Rename(away, filepath.Dir(path)))
		}, os.ErrNotExist, unchanged},
		"retirement not recorded": {true, fails, errRecord, unchanged},
		"retirement from a changed file": {true, func(path string, _ func() error) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte(canary), 0o600))
		}, seal.ErrKeysetUnusable, canary},
		"retirement without the file": {true, func(path string, _ func() error) error { return os.Remove(path) }, os.ErrNotExist, ""},
	} {
		ring, path := newRing(t)
		rotate(t, path)
		before := read(t, path)
		var err error
		if test.retire {
			_, err = ring.Retire(t.Context(), func(*seal.Keys) error { return test.interfere(path, nil) })
		} else {
			err = ring.Change(t.Context(), seal.RotateKey, func(_ *seal.Keys, write func() error) error {
				return test.interfere(path, write)
			})
		}
		content, _ := os.ReadFile(path)
		if test.content == unchanged {
			test.content = before
		}
		if !errors.Is(err, test.want) || string(content) != test.content {
			t.Errorf("%s: error is %v, want %v, and the file unchanged", name, err, test.want)
		}
	}
}

// retire removes old keys from the file.
func retire(t *testing.T, path string) seal.Retirement {
	t.Helper()
	retired, err := open(t, path).Retire(t.Context(), func(*seal.Keys) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return retired
}

// A server that was idle during several rotations accepts a file without the keys retired meanwhile, including its own.
// It refuses what they sealed, and its error says where they are, also after the next retirement.
func TestRetiredKeysMayBeMissing(t *testing.T) {
	t.Parallel()
	server, path := newRing(t)
	first := current(t, server)
	sealed, sealErr := first.Seal(seal.NewSecret(canary), seal.Place{})
	fingerprint, err := first.Fingerprint([]byte(canary))
	if err := errors.Join(sealErr, err); err != nil {
		t.Fatal(err)
	}
	rotate(t, path)
	rotate(t, path)
	before := read(t, path)
	retired := retire(t, path)
	if len(retired.IDs) != 2 || retired.IDs[0] != first.PrimaryID() || read(t, retired.Kept) != before {
		t.Fatalf("retired %v to %s, want two keys and an unchanged file", retired.IDs, retired.Kept)
	}
	rotate(t, path)
	if second := retire(t, path); second.Kept == retired.Kept {
		t.Error("a kept file was replaced")
	}
	after := current(t, server)
	if !after.Matches(fingerprint, []byte(canary)) {
		t.Error("a fingerprint from before the retirement does not match")
	}
	want := regexp.MustCompile(`the keyset lacks key [0-9]+ \(retired to ` + regexp.QuoteMeta(filepath.Base(retired.Kept)) + `\)$`)
	if _, err := after.Unseal(sealed, seal.Place{}); !errors.Is(err, seal.ErrDamaged) || !want.MatchString(err.Error()) {
		t.Errorf("error is %v, want ErrDamaged and where the key is", err)
	}
	if secret, err := current(t, open(t, retired.Kept)).Unseal(sealed, seal.Place{}); err != nil || secret.Reveal() != canary {
		t.Errorf("with the file that was kept: %v", err)
	}
}
