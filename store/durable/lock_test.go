package durable_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/store/durable"
	"example.com/providerd/store/durable/durabletest"
)

// waitAwhile is as long as a test waits for a lock that it must not get.
const waitAwhile = 60 * time.Millisecond

// expectLock takes the lock of a folder, or does not get it, when it waits for a while.
func expectLock(t *testing.T, folder string, want bool) {
	t.Helper()
	limit := waitAwhile
	if want {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	got := false
	err := durable.WithLock(ctx, folder, func() error {
		got = true
		return nil
	})
	if got != want || errors.Is(err, context.DeadlineExceeded) == want {
		t.Errorf("lock of %s: %t, want %t, %v", folder, got, want, err)
	}
}

// However a folder is named, its lock is one.
func TestOneAtATimeHoldsTheLock(t *testing.T) {
	t.Parallel()
	folder, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	var inside, turns atomic.Int32
	var group sync.WaitGroup
	names := []string{folder, link, folder + "/.", link + "/"}
	for _, name := range names {
		group.Go(func() {
			for range 5 {
				if err := durable.WithLock(t.Context(), name, func() error {
					if inside.Add(1) > 1 {
						t.Error("two hold the lock")
					}
					expectLock(t, folder, false)
					turns.Add(1)
					inside.Add(-1)
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if want := int32(5 * len(names)); turns.Load() != want {
		t.Errorf("%d turns, want %d", turns.Load(), want)
	}
}

// Another program's lock is respected, and ends with that program.
func TestLockEndsWithItsHolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	holder := durabletest.Start(t, "hold", folder)
	expectLock(t, folder, false)
	expectLock(t, t.TempDir(), true)
	holder.Kill(t)
	expectLock(t, folder, true)
}

func TestLockIsReleasedWhateverWorkDoes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	errWork, panicked := errors.New("work"), "panicked"
	if err := durable.WithLock(t.Context(), folder, func() error { return errWork }); !errors.Is(err, errWork) {
		t.Errorf("error is %v, want that of work", err)
	}
	expectLock(t, folder, true)
	func() {
		defer func() {
			if recover() != panicked {
				t.Error("the panic of work was lost")
			}
		}()
		_ = durable.WithLock(t.Context(), folder, func() error { panic(panicked) })
	}()
	expectLock(t, folder, true)
}

func TestLockThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx    context.Context
		folder string
		want   error
	}{
		"ended context":  {ended, t.TempDir(), context.Canceled},
		"missing folder": {t.Context(), filepath.Join(t.TempDir(), "missing"), fs.ErrNotExist},
	} {
		err := durable.WithLock(test.ctx, test.folder, func() error {
			t.Errorf("%s: work was done", name)
			return nil
		})
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.folder) {
			t.Errorf("%s: error is %v, want %v with %s", name, err, test.want, test.folder)
		}
	}
}
