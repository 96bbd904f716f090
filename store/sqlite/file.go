package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/providerd/store/database"
	"example.com/providerd/store/durable"
	"example.com/providerd/store/sqlite/guard"
)

// applicationID is the application_id in the header of providerd's databases ("pvdd" in ASCII).
const applicationID = 0x70766464

// checkHeader checks the database header (https://www.sqlite.org/fileformat.html, section 1.3) before the rest of a
// large file is read. It returns database.ErrForeign if the file is not a providerd database.
func checkHeader(file *os.File) error {
	const (
		size     = 100
		magic    = "SQLite format 3\x00"
		idOffset = 68
	)
	header := make([]byte, size)
	count, err := file.ReadAt(header, 0)
	switch {
	case count == 0 && errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %s is empty", database.ErrForeign, file.Name())
	case err != nil && !errors.Is(err, io.EOF):
		return fmt.Errorf("read the backup: %w", err)
	case !bytes.HasPrefix(header, []byte(magic)) || count < size:
		return fmt.Errorf("%w: %s is not a SQLite database", database.ErrForeign, file.Name())
	}
	if id := binary.BigEndian.Uint32(header[idOffset:]); id != applicationID {
		return fmt.Errorf("%w: %s has application_id %d", database.ErrForeign, file.Name(), id)
	}
	return nil
}

// openDatabaseFile opens a database file that only its owner can write to. It returns ErrUnavailable, ErrInsecureMode
// or a file system error.
func openDatabaseFile(path string) (*guard.File, error) {
	file, err := guard.Open(path)
	if err != nil {
		return nil, err
	}
	const othersMayWrite = 0o022
	if file.Mode()&othersMayWrite != 0 {
		err = fmt.Errorf("%w: others can write to %s; run chmod 600 on it", database.ErrInsecureMode, path)
	} else {
		err = checkDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// checkDir returns ErrInsecureMode if anyone can replace the files in a directory.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("inspect the directory of the database: %w", err)
	}
	const anyoneMayWrite = 0o002
	if info.Mode()&anyoneMayWrite != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("%w: anyone can replace the files in %s; run chmod o-w on it", database.ErrInsecureMode, dir)
	}
	return nil
}

// createIfMissing creates the database file if there is none. It returns a file system error.
func createIfMissing(path string) error {
	file, err := durable.OpenOrCreate(path, 0)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("open or create the database: %w", err)
	}
	return nil
}

// checkNoOrphanWAL returns ErrUnavailable if the database is missing but its WAL exists: SQLite would delete the WAL
// when it creates the database. It checks the WAL first, because SQLite writes to a new database before it writes to
// the WAL.
func checkNoOrphanWAL(path string) error {
	if wal, err := os.Stat(path + "-wal"); err != nil || wal.Size() == 0 {
		return nil //nolint:nilerr // There is no WAL.
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	return fmt.Errorf("%w: %s is missing or empty, but its WAL exists; put the database file back, or remove the -wal "+
		"and -shm files to start with a new database", database.ErrUnavailable, path)
}
