package sqlite

import (
	"errors"
	"fmt"

	"example.com/providerd/store/database"
)

// applicationID marks a SQLite database as one of providerd ("pvdd" in ASCII), in the header of its file.
const applicationID = 0x70766464

// openDatabaseFile opens the file of a database that nobody but its owner can write to. It returns ErrExposed or
// an error of the file system.
func openDatabaseFile(path string) (*guardedFile, error) {
	file, err := openGuarded(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("look at the database: %w", err), file.Close())
	}
	const othersMayWrite = 0o022
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		err = fmt.Errorf("%w: %s is not a regular file", database.ErrUnavailable, path)
	case mode.Perm()&othersMayWrite != 0:
		err = fmt.Errorf("%w: others can write to %s; run chmod 600 on it", database.ErrExposed, path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
