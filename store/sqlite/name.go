package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"example.com/providerd/store/durable"
)

// ErrReservedName says that a file with such a name may be removed, or taken for one that belongs to a database.
var ErrReservedName = errors.New("the name is reserved")

// sidecars end the names of SQLite's own files beside a database.
func sidecars() []string { return []string{"-wal", "-shm", "-journal"} }

// CheckName returns ErrReservedName for the path of a file that SQLite or this program would remove, or roll back into
// the database beside it.
func CheckName(path string) error {
	name := filepath.Base(path)
	for _, suffix := range sidecars() {
		if strings.HasSuffix(name, suffix) {
			return fmt.Errorf("%w: %s ends in %s, as SQLite's own files beside a database do; "+
				"choose another name", ErrReservedName, path, suffix)
		}
	}
	if durable.IsUnfinished(name) {
		return fmt.Errorf("%w: %s ends like an unfinished file, which providerd removes; choose another name",
			ErrReservedName, path)
	}
	return nil
}
