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

// usage records the use of the keys of one file.
type usage struct {
	mutex sync.Mutex
	// recorded counts how often each key was passed to record.
	recorded map[uint32]int
	// sealed has a ciphertext of each key.
	sealed map[uint32][]byte
}

func (u *usage) seal(keys *seal.Keys, count int) error {
	sealed, err := keys.Seal(seal.NewSecret(canary), seal.Place{})
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.recorded[keys.PrimaryID()] += count
	u.sealed[keys.PrimaryID()] = sealed
	return err
}

func (u *usage) record(after *seal.Keys, write func() error) error {
	return errors.Join(u.seal(after, 1), write())
}

// Concurrent rotations lose no key: each is recorded once, and the file ends up with all. A server that seals meanwhile
// always has keys, and the final keys unseal everything.
func TestConcurrentRotations(t *testing.T) {
	t.Parallel()
	server, path := newRing(t)
	const programs, rotations = 6, 3
	used := usage{recorded: map[uint32]int{}, sealed: map[uint32][]byte{}}
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
				if err := ring.Change(t.Context(), seal.RotateKey, used.record); err != nil {
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
	if len(used.recorded) != 1+programs*rotations {
		t.Errorf("%d keys were used, want the first and %d", len(used.recorded), programs*rotations)
	}
	after := current(t, open(t, path))
	for id, count := range used.recorded {
		if count != 1 {
			t.Errorf("key %d was recorded %d times", id, count)
		}
		if secret, err := after.Unseal(used.sealed[id], seal.Place{}); err != nil || secret.Reveal() != canary {
			t.Errorf("the file lacks key %d: %v", id, err)
		}
	}
}

// If record or the write fails, its error is returned and the file is unchanged.
func TestFailedRotationLeavesFile(t *testing.T) {
	t.Parallel()
	errRecord := errors.New("cannot be recorded")
	for name, test := range map[string]struct {
		record func(path string, write func() error) error
		want   error
	}{
		"record": {func(string, func() error) error { return errRecord }, errRecord},
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
		err := ring.Change(t.Context(), seal.RotateKey, func(_ *seal.Keys, write func() error) error { return test.record(path, write) })
		if !errors.Is(err, test.want) || read(t, path) != before {
			t.Errorf("%s: error is %v, want %v, and the file unchanged", name, err, test.want)
		}
	}
}

func TestRotationStopsWaitingWithContext(t *testing.T) {
	t.Parallel()
	ring, path := newRing(t)
	const awhile = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), awhile)
	defer cancel()
	err := durable.WithLock(t.Context(), filepath.Dir(path), func() error {
		return ring.Change(ctx, seal.RotateKey, func(*seal.Keys, func() error) error {
			t.Error("recorded while another program holds the lock")
			return nil
		})
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want context.DeadlineExceeded", err)
	}
}
