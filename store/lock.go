package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
)

// lockRetry is how often a process looks whether another one has given a lock back.
const lockRetry = 20 * time.Millisecond

// withLock does work while it holds the lock of a folder, for which programs take turns.
func withLock(ctx context.Context, folder string, work func() error) (err error) {
	lock := flock.New(folder, flock.SetFlag(os.O_RDONLY))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("lock the folder %s: %w", folder, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return work()
}

// isSameFolder tells whether two paths lead to one folder, whose lock can be held but once.
func isSameFolder(one, other string) bool {
	first, err := os.Stat(one)
	if err != nil {
		return false
	}
	second, err := os.Stat(other)
	return err == nil && os.SameFile(first, second)
}
