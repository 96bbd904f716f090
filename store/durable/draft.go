package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Draft is a large file that is being written under a name of its own, beside the one that it gets once it is whole.
// Only its owner can read it: who runs the program, unless Chown gives it to somebody else.
type Draft struct {
	*os.File
	path string
}

// CreateDraft begins the file that is to have the name path, and removes what processes that died left of such a file.
// It returns an error of the file system as it is.
func CreateDraft(path string) (*Draft, error) {
	dir, name := filepath.Dir(path), filepath.Base(path)
	file, err := createLocked(dir, name+".*"+unfinishedSuffix)
	if err != nil {
		return nil, err
	}
	draft := &Draft{File: file, path: path}
	if err := RemoveAbandoned(dir, func(other string) bool { return other == name }); err != nil {
		return nil, errors.Join(err, draft.Close())
	}
	return draft, nil
}

// createLocked creates a file that RemoveAbandoned leaves. Before it is locked, another program may take it for one
// that was abandoned; then it creates another one.
func createLocked(dir, pattern string) (*os.File, error) {
	for {
		file, err := os.CreateTemp(dir, pattern)
		if err != nil {
			return nil, err //nolint:wrapcheck // Callers say what they write.
		}
		err = lock(file)
		if err == nil {
			_, err = os.Lstat(file.Name())
		}
		if err == nil {
			return file, nil
		}
		err = errors.Join(err, file.Close())
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, os.Remove(file.Name()))
		}
	}
}

// Publish makes sure that the file is on disk and gives it its name. It returns fs.ErrExist where something has that
// name, or an error of the file system.
func (d *Draft) Publish() error {
	if err := d.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", d.path, err)
	}
	// Unlike a rename, a link replaces nothing.
	if err := os.Link(d.Name(), d.path); err != nil {
		return fmt.Errorf("write %s: %w", d.path, err)
	}
	if err := os.Remove(d.Name()); err != nil {
		return fmt.Errorf("write %s: %w", d.path, err)
	}
	return syncDir(filepath.Dir(d.path))
}

// Replace is Publish for a name that a file has, which gets the name kept, in the same folder. There is a file with the
// name at any time. It returns fs.ErrExist where something has the name kept, or an error of the file system.
func (d *Draft) Replace(kept string) error {
	if err := d.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", d.path, err)
	}
	if err := keep(d.path, kept); err != nil {
		return err
	}
	if err := os.Rename(d.Name(), d.path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", d.path, err), os.Remove(kept))
	}
	return syncDir(filepath.Dir(d.path))
}

// Close removes the file, unless it has its name. It returns an error of the file system.
func (d *Draft) Close() error {
	err := os.Remove(d.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err, d.File.Close()); err != nil {
		return fmt.Errorf("close the draft of %s: %w", d.path, err)
	}
	return nil
}

// RemoveAbandoned removes the drafts in a folder that no process writes any more, of files with the names that are
// wanted, and leaves those that another user alone can remove. It returns an error of the file system.
func RemoveAbandoned(dir string, isWanted func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("find files left by an earlier attempt: %w", err)
	}
	for _, entry := range entries {
		name, ok := draftTarget(entry.Name())
		if !ok || !entry.Type().IsRegular() || !isWanted(name) {
			continue
		}
		if err := removeAbandoned(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("remove files left by an earlier attempt: %w", err)
		}
	}
	return nil
}

// draftTarget returns the name that a draft is to get.
func draftTarget(name string) (string, bool) {
	name, ok := strings.CutSuffix(name, unfinishedSuffix)
	dot := strings.LastIndexByte(name, '.')
	if !ok || dot < 0 || dot == len(name)-1 || strings.Trim(name[dot+1:], "0123456789") != "" {
		return "", false
	}
	return name[:dot], true
}

// removeAbandoned leaves what another user wrote and only that user can judge, as in a folder that users share. What
// another program has just removed is no error.
func removeAbandoned(path string) error {
	err := removeIfUnlocked(path)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func removeIfUnlocked(path string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err //nolint:wrapcheck // The caller's caller does.
	}
	switch err = lock(file); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = nil
	case err == nil:
		err = os.Remove(path)
	}
	return errors.Join(err, file.Close())
}

// lock takes a lock that ends with the process, or returns syscall.EWOULDBLOCK where another process has it.
func lock(file *os.File) error {
	//nolint:wrapcheck // Callers do.
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
