package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// unfinishedSuffix ends the name of a file that is not yet in its place.
const unfinishedSuffix = ".unfinished"

// WriteDurably puts a file in its place whole and on disk, or not at all. Only the owner can read it. What a process that
// died left behind is replaced, so that programs must take turns in writing one path. It returns an error of the file
// system.
func WriteDurably(path string, content []byte) (err error) {
	unfinished := path + unfinishedSuffix
	if err := removeUnfinished(path); err != nil {
		return err
	}
	file, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(unfinished))
		}
	}()
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(unfinished, path), syncFolder(filepath.Dir(path)))
}

// removeUnfinished removes what a process left that died while it wrote the file.
func removeUnfinished(path string) error {
	if err := os.Remove(path + unfinishedSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what was left of an earlier try: %w", err)
	}
	return nil
}

// syncFolder makes a rename in the folder survive a crash.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}
