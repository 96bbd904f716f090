// Package durable writes files that are complete after a crash, hands them to their owner, and lets programs take turns
// in a directory. It does not know the content of the files.
//
// Start with WriteFile and WithLock. Draft is for files that are written step by step, such as a backup.
package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// unfinishedSuffix ends the names of files that are still being written.
const unfinishedSuffix = ".unfinished"

// WriteFile writes a file completely and syncs it, or leaves path unchanged. Chown gives the file to owner before it
// gets its name, and nobody else can read it. WriteFile replaces what a dead process left behind, so programs must hold
// the lock of WithLock to write the same path. It returns a file system error.
func WriteFile(path string, content []byte, owner Owner) (err error) {
	unfinished := path + unfinishedSuffix
	if err := RemoveUnfinished(path); err != nil {
		return err
	}
	file, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = file.Write(content)
	if err := errors.Join(err, Chown(file, owner), file.Sync(), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(unfinished))
	}
	if err := os.Rename(unfinished, path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(unfinished))
	}
	return syncDir(filepath.Dir(path))
}

// RemoveUnfinished removes what a process that died in WriteFile left. It returns a file system error.
func RemoveUnfinished(path string) error {
	if err := os.Remove(path + unfinishedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove files left by an earlier attempt: %w", err)
	}
	return nil
}

// syncDir makes a rename in the directory survive a crash.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// lockRetry is the interval between attempts to lock a directory.
const lockRetry = 20 * time.Millisecond

// WithLock calls work while holding the lock of a directory. Work must not lock another directory: programs that lock
// two in different orders would deadlock. It returns the error of work or ctx, or a file system error.
func WithLock(ctx context.Context, dir string, work func() error) (err error) {
	lock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("lock directory %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return work()
}
