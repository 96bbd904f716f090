package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// timestampLayout formats a time in UTC for a file name.
const timestampLayout = "20060102T150405Z"

// UnusedName returns an unused name under which to keep the file at path: the path, a word for what becomes of the
// file, the time and, if necessary, a number. It returns a file system error.
func UnusedName(path, becomes string) (string, error) {
	name := path + "." + becomes + "-" + time.Now().UTC().Format(timestampLayout)
	kept := name
	for number := 2; ; number++ {
		if exists, err := Exists(kept); err != nil || !exists {
			return kept, err
		}
		kept = fmt.Sprintf("%s-%d", name, number)
	}
}

// keep gives a file a second name, under which it remains when another file replaces it, and syncs the directory.
func keep(path, kept string) error {
	if err := os.Link(path, kept); err != nil {
		return fmt.Errorf("keep %s: %w", path, err)
	}
	if err := syncDir(filepath.Dir(kept)); err != nil {
		return errors.Join(err, os.Remove(kept))
	}
	return nil
}
