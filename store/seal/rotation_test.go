package seal_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"example.com/providerd/store/durable"
	"example.com/providerd/store/seal"
)

// usage is what was done with the keys of one file at a time.
type usage struct {
	mutex sync.Mutex
	// noted counts how often each key was handed to a note.
	noted map[uint32]int
	// sealed has a ciphertext of each key.
	sealed map[uint32][]byte
}

func (u *usage) seal(keys *seal.Keys, count int) error {
	sealed, err := keys.Seal(seal.NewSecret(canary), seal.Place{})
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.noted[keys.PrimaryID()] += count
	u.sealed[keys.PrimaryID()] = sealed
	return err
}

func (u *usage) note(after *seal.Keys, write func() error) error {
	return errors.Join(u.seal(after, 1), write())
}

// Programs that rotate at a time lose no key: each is handed to one note, and the file has all in the end. A server that
// seals meanwhile finds keys at any time, and what it sealed with them is read with those of the end.
func TestManyRotationsAtATime(t *testing.T) {
	t.Parallel()
	server, path := newRing(t)
	const programs, rotations = 6, 3
	used := usage{noted: map[uint32]int{}, sealed: map[uint32][]byte{}}
	if err := used.seal(current(t, server), 1); err != nil {
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
				if err := ring.Change(t.Context(), seal.RotateKey, used.note); err != nil {
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
				if keys, err := server.Current(t.Context()); err != nil || used.seal(keys, 0) != nil {
					t.Errorf("seal meanwhile: %v", err)
				}
			}
		})
	}
	rotating.Wait()
	close(rotated)
	serving.Wait()
	if len(used.noted) != 1+programs*rotations {
		t.Errorf("%d keys were used, want the first and %d", len(used.noted), programs*rotations)
	}
	after := current(t, open(t, path))
	for id, count := range used.noted {
		if count != 1 {
			t.Errorf("key %d was noted %d times", id, count)
		}
		if secret, err := after.Unseal(used.sealed[id], seal.Place{}); err != nil || secret.Reveal() != canary {
			t.Errorf("the file lacks key %d: %v", id, err)
		}
	}
}

// Where the note fails, or the write, that is the error, and the file is as it was.
func TestFailedRotationLeavesTheFile(t *testing.T) {
	t.Parallel()
	errNote := errors.New("cannot be noted")
	for name, test := range map[string]struct {
		note func(path string, write func() error) error
		want error
	}{
		"note": {func(string, func() error) error { return errNote }, errNote},
		"write": {func(path string, write func() error) error {
			return errors.Join(os.MkdirAll(path+".unfinished/x", 0o700), write())
		}, os.ErrExist},
		"write to a missing directory": {func(path string, write func() error) error {
			away := filepath.Dir(path) + ".away"
			return errors.Join(os.Rename(filepath.Dir(path), away), write(), os.Rename(away, filepath.Dir(path)))
		}, os.ErrNotExist},
	} {
		ring, path := newRing(t)
		before := read(t, path)
		err := ring.Change(t.Context(), seal.RotateKey, func(_ *seal.Keys, write func() error) error { return test.note(path, write) })
		if !errors.Is(err, test.want) || read(t, path) != before {
			t.Errorf("%s: error is %v, want %v, and the file as it was", name, err, test.want)
		}
	}
}

func TestRotationWaitsForItsTurnUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	ring, path := newRing(t)
	const awhile = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), awhile)
	defer cancel()
	err := durable.WithLock(t.Context(), filepath.Dir(path), func() error {
		return ring.Change(ctx, seal.RotateKey, func(*seal.Keys, func() error) error {
			t.Error("noted while another program has its turn")
			return nil
		})
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want context.DeadlineExceeded", err)
	}
}
