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

// Draft is a large file being written under a temporary name in the directory of its final path. Only its owner can
// read it: the user that runs the program, unless Chown changes it.
type Draft struct {
	*os.File
	path string
}

// CreateDraft creates the draft of a file that will be at path, and removes drafts of it that dead processes left. It
// returns an unwrapped file system error.
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

// createLocked creates a temporary file that RemoveAbandoned does not remove. Another process may remove the file
// before it is locked; createLocked then creates another one.
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

// Publish syncs the file and gives it its final name. It returns fs.ErrExist if that name is taken, or a file system
// error.
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

// Replace is Publish for a name that is taken. The existing file gets the name kept, in the same directory. The name
// refers to one of the two files at any time. It returns fs.ErrExist if the name kept is taken, or a file system error.
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

// Close closes the file and removes it unless it was published. It returns a file system error.
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

// RemoveAbandoned removes the drafts in a directory that no process is writing and whose final names are wanted. It
// skips those that only another user can remove. It returns a file system error.
func RemoveAbandoned(dir string, wanted func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("find files left by an earlier attempt: %w", err)
	}
	for _, entry := range entries {
		name, ok := draftTarget(entry.Name())
		if !ok || !entry.Type().IsRegular() || !wanted(name) {
			continue
		}
		if err := removeAbandoned(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("remove files left by an earlier attempt: %w", err)
		}
	}
	return nil
}

// draftTarget returns the final name of a draft.
func draftTarget(name string) (string, bool) {
	name, ok := strings.CutSuffix(name, unfinishedSuffix)
	dot := strings.LastIndexByte(name, '.')
	if !ok || dot < 0 || dot == len(name)-1 || strings.Trim(name[dot+1:], "0123456789") != "" {
		return "", false
	}
	return name[:dot], true
}

// removeAbandoned skips a draft that only another user can open or remove, as in a shared directory. It is not an error
// if the draft has just been removed.
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

// lock takes a lock that the kernel releases when the process ends, or returns syscall.EWOULDBLOCK if another process
// holds it.
func lock(file *os.File) error {
	//nolint:wrapcheck // Callers do.
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
