package files_test

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

	"example.com/providerd/store/files"
	"example.com/providerd/store/storetest/processtest"
)

// waitAwhile is how long a test waits for a lock that it must not get.
const waitAwhile = 60 * time.Millisecond

// expectLock tries to lock a directory for a while, and checks whether it succeeds.
func expectLock(t *testing.T, dir string, want bool) {
	t.Helper()
	limit := waitAwhile
	if want {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	got := false
	err := files.WithLock(ctx, dir, func() error {
		got = true
		return nil
	})
	if got != want || errors.Is(err, context.DeadlineExceeded) == want {
		t.Errorf("lock of %s: %t, want %t, %v", dir, got, want, err)
	}
}

// A directory has one lock, whichever path leads to it.
func TestLockIsExclusive(t *testing.T) {
	t.Parallel()
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	var inside, turns atomic.Int32
	var group sync.WaitGroup
	names := []string{dir, link, dir + "/.", link + "/"}
	for _, name := range names {
		group.Go(func() {
			for range 5 {
				if err := files.WithLock(t.Context(), name, func() error {
					if inside.Add(1) > 1 {
						t.Error("the lock is held twice")
					}
					expectLock(t, dir, false)
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

// A lock of another program is respected, and ends with that program.
func TestLockEndsWithItsHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	holder := processtest.StartSelf(t, "hold", dir)
	expectLock(t, dir, false)
	expectLock(t, t.TempDir(), true)
	holder.Kill(t)
	expectLock(t, dir, true)
}

func TestLockErrors(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		dir  string
		want error
	}{
		"ended context":     {ended, t.TempDir(), context.Canceled},
		"missing directory": {t.Context(), filepath.Join(t.TempDir(), "missing"), fs.ErrNotExist},
	} {
		err := files.WithLock(test.ctx, test.dir, func() error {
			t.Errorf("%s: work was done", name)
			return nil
		})
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.dir) {
			t.Errorf("%s: error is %v, want %v with %s", name, err, test.want, test.dir)
		}
	}
}
