package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// timestampLayout is the time of something, in UTC, in the name of a file.
const timestampLayout = "20060102T150405Z"

// UnusedName is a name for what is at path and about to be replaced, that nothing has: the path, what becomes of it,
// and the time. A file may be replaced twice in a second. It returns an error of the file system.
func UnusedName(path, becomes string) (string, error) {
	name := path + "." + becomes + "-" + time.Now().UTC().Format(timestampLayout)
	kept := name
	for number := 2; ; number++ {
		if isThere, err := Exists(kept); err != nil || !isThere {
			return kept, err
		}
		kept = fmt.Sprintf("%s-%d", name, number)
	}
}

// Keep gives a file a second name, that of UnusedName, under which it stays when another one takes its place. It
// returns an error of the file system.
func Keep(path, becomes string) (kept string, err error) {
	if kept, err = UnusedName(path, becomes); err != nil {
		return "", err
	}
	return kept, keep(path, kept)
}

// keep makes sure that the file has its second name on disk.
func keep(path, kept string) error {
	if err := os.Link(path, kept); err != nil {
		return fmt.Errorf("keep %s: %w", path, err)
	}
	if err := syncDir(filepath.Dir(kept)); err != nil {
		return errors.Join(err, os.Remove(kept))
	}
	return nil
}
