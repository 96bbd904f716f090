// Package durable writes files that are whole after a crash, gives them to their owner, and lets programs take turns
// in a folder. It knows nothing of what is in the files.
//
// Start with WriteFile and WithLock; Draft in draft.go is for files that are written step by step, such as a backup.
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

// unfinishedSuffix ends the name of a file that is not yet in its place.
const unfinishedSuffix = ".unfinished"

// WriteFile puts a file in its place whole and on disk, or not at all. Only the owner can read it, to whom it is given
// before it has its name, as by Chown. What a process that died left behind is replaced; so programs must take turns in
// writing one path, with WithLock. It returns an error of the file system.
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

// RemoveUnfinished removes what a process left that died in WriteFile. It returns an error of the file system.
func RemoveUnfinished(path string) error {
	if err := os.Remove(path + unfinishedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove files left by an earlier attempt: %w", err)
	}
	return nil
}

// syncDir makes a rename in the folder survive a crash.
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

// lockRetry is how often a program looks whether another one has released the lock of a folder.
const lockRetry = 20 * time.Millisecond

// WithLock does work while it holds the lock of a folder, for which programs take turns. Work must not lock a folder in
// turn: programs that lock two in different orders would wait for each other. It returns the error of work, of the file
// system or of ctx.
func WithLock(ctx context.Context, dir string, work func() error) (err error) {
	lock := flock.New(dir, flock.SetFlag(os.O_RDONLY))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("lock directory %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return work()
}
