package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// lockRetry is how often a process looks whether another one has released a lock.
const lockRetry = 20 * time.Millisecond

// withLocks does work while it holds the locks of folders, for which programs take turns. Every program takes them in
// the same order, so that no two wait for each other.
func withLocks(ctx context.Context, folders []string, work func() error) (err error) {
	ordered, err := inLockOrder(folders)
	if err != nil {
		return err
	}
	for _, folder := range ordered {
		lock := flock.New(folder, flock.SetFlag(os.O_RDONLY))
		if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
			return fmt.Errorf("lock the folder %s: %w", folder, err)
		}
		defer func() { err = errors.Join(err, lock.Unlock()) }()
	}
	return work()
}

// inLockOrder sorts folders by device and inode and names each once, since paths may lead to one folder in several ways.
func inLockOrder(folders []string) ([]string, error) {
	type place struct{ device, inode uint64 }
	places := map[string]place{}
	for _, folder := range folders {
		var status syscall.Stat_t
		if err := syscall.Stat(folder, &status); err != nil {
			return nil, fmt.Errorf("look at the folder %s: %w", folder, err)
		}
		places[folder] = place{status.Dev, status.Ino}
	}
	ordered := slices.Clone(folders)
	slices.SortFunc(ordered, func(a, b string) int {
		return cmp.Or(cmp.Compare(places[a].device, places[b].device), cmp.Compare(places[a].inode, places[b].inode))
	})
	return slices.CompactFunc(ordered, func(a, b string) bool { return places[a] == places[b] }), nil
}

// pause waits for a length of time, or until ctx is done, which is its error.
func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", ctx.Err())
	}
}
