package sqlite

import (
	"errors"
	"fmt"
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
