package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// replaced is in the names of replaced databases.
const replaced = "replaced"

// LeftoverLinks returns the hard links to the database at path that are named like databases it has replaced. A restore
// leaves one if it is killed before the backup gets its name. It returns a file system error.
func LeftoverLinks(path string) (links []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("find hard links to the database: %w", err)
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("find hard links to the database: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), filepath.Base(path)+"."+replaced+"-") {
			continue
		}
		// Skip files that were removed since ReadDir.
		if info, err := entry.Info(); err == nil && os.SameFile(own, info) {
			links = append(links, filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	return links, nil
}

// removeLeftovers removes what killed restores left beside the database at path: hard links to it, and drafts other
// than the caller's.
func removeLeftovers(path, draft string) error {
	names, err := LeftoverLinks(path)
	if err != nil {
		return err
	}
	drafts, err := filepath.Glob(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"[0-9]*"))
	for _, name := range append(names, drafts...) {
		if name != draft {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}
