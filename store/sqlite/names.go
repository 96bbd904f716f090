package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrReservedName means that a file of that name could be taken for a file of a database.
var ErrReservedName = errors.New("the name is reserved")

// sidecars returns the suffixes of the files that SQLite keeps next to a database.
func sidecars() []string { return []string{"-wal", "-shm", "-journal"} }

// CheckName returns ErrReservedName if SQLite could delete a file at path, or roll it back into a database.
func CheckName(path string) error {
	name := filepath.Base(path)
	for _, suffix := range sidecars() {
		if strings.HasSuffix(name, suffix) {
			return fmt.Errorf("%w: %s ends in %s, as SQLite's own files next to a database do; "+
				"choose another name", ErrReservedName, path, suffix)
		}
	}
	return nil
}

// replaced is in the names of replaced databases.
const replaced = "replaced"

// LeftoverLinks returns the hard links to the database at path that are named like databases it has replaced. A restore
// leaves one if it is killed before the backup has its name. It returns a file system error.
func LeftoverLinks(path string) (links []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	own, ownErr := os.Lstat(path)
	if err := cmp.Or(err, ownErr); err != nil {
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

// removeLeftovers removes what killed restores left: hard links to the database at path, and drafts of others.
func removeLeftovers(path, draft string) error {
	names, err := LeftoverLinks(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("find temporary files of the database: %w", err)
	}
	for _, entry := range entries {
		number, isDraft := strings.CutPrefix(entry.Name(), "."+filepath.Base(path))
		if name := filepath.Join(dir, entry.Name()); isDraft && name != draft && isDraftNumber(number) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// isDraftNumber reports whether a string is one of the long numbers in the names of drafts.
func isDraftNumber(text string) bool {
	const shortest = 8
	return len(text) >= shortest && strings.Trim(text, "0123456789") == ""
}
