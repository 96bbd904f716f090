package sqlite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
	"example.com/providerd/store/sqlite/guard"
)

// applicationID is the application_id in the header of providerd's databases ("pvdd" in ASCII).
const applicationID = 0x70766464

// isBlank reports whether a database file has nothing in it. It reads the header, and so changes nothing. It
// returns database.ErrForeign for a database of another program, ErrCorrupt if the file is not a database, or a file
// system error.
func isBlank(file *os.File) (bool, error) {
	const pageSize, idTill = 16, 72
	// The size comes first: identify writes the header before a checkpoint enlarges the file.
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	header := make([]byte, idTill)
	count, err := file.ReadAt(header, 0)
	switch {
	case count == 0 && errors.Is(err, io.EOF):
		return true, nil
	case err != nil && !errors.Is(err, io.EOF):
		return false, fmt.Errorf("read %s: %w", file.Name(), err)
	case count < idTill || !bytes.HasPrefix(header, []byte(guard.Magic)):
		return false, fmt.Errorf("%s: %w: file is not a database", file.Name(), database.ErrCorrupt)
	}
	// A database without a second page has no tables.
	isOnePage := info.Size() <= int64(binary.BigEndian.Uint16(header[pageSize:]))
	id := binary.BigEndian.Uint32(header[idTill-4:])
	if id != applicationID && (id != 0 || !isOnePage) {
		return false, fmt.Errorf("%w: %s has application_id %d", database.ErrForeign, file.Name(), id)
	}
	return id == 0, nil
}

// openDatabaseFile opens a database file that only its owner can write to. It returns ErrUnavailable, ErrInsecureMode
// or a file system error.
func openDatabaseFile(path string) (*guard.File, error) {
	file, err := guard.Open(path)
	if err != nil {
		return nil, err
	}
	const othersMayWrite = 0o022
	if file.Opened.Mode()&othersMayWrite != 0 {
		err = fmt.Errorf("%w; run chmod 600 %s", database.ErrInsecureMode, path)
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
		return fmt.Errorf("%w, because they can replace files in its directory; run chmod o-w %s",
			database.ErrInsecureMode, dir)
	}
	return nil
}

// createIfMissing creates the database file if there is none. It returns a file system error.
func createIfMissing(path string) error {
	file, err := files.OpenOrCreate(path, 0)
	if err == nil {
		err = file.Close()
	}
	return database.Wrap("open or create the database", err)
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
	return fmt.Errorf("%w: %s is missing or empty, but its WAL, which contains the newest changes, exists; restore the "+
		"database file, or move the -wal and -shm files away to start with a new database", database.ErrUnavailable, path)
}

// sizeOf returns the size of a file in bytes, or -1 if it does not exist.
func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return -1, nil
	}
	return info.Size(), database.Wrap("inspect the database files", err)
}

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

// inspect checks, before anything is changed, that the file is empty or a database of providerd, and that a WAL which
// other programs have open or a crash left behind belongs to it. The caller must close what is returned after opening
// another connection: when the last one closes, SQLite copies the WAL into the database. If the WAL belongs to another
// database, the connection is therefore never closed and lasts as long as the process.
func (d *Database) inspect(ctx context.Context) (io.Closer, error) {
	if _, err := guard.CheckUse(ctx, d.file); err != nil {
		return nil, err
	}
	wal, err := sizeOf(d.file.Name() + "-wal")
	if err != nil {
		return nil, err
	}
	isBlank, err := isBlank(d.file.File)
	if errors.Is(err, database.ErrCorrupt) && wal > 0 {
		return nil, guard.Changed(d.file.Name())
	}
	if err != nil {
		return nil, err
	}
	d.isNew = isBlank && wal <= 0
	if wal <= 0 {
		return io.NopCloser(nil), nil
	}
	// Its DSN has no settings that make SQLite read the schema, which mismatched files may lack.
	probe, err := openDSN(d.file.Name(), fmt.Sprintf("mode=rw&_busy_timeout=%d", busyTimeout.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("inspect the database: %w", err)
	}
	probe.SetMaxOpenConns(1)
	err = d.file.CheckGeneration(func() (uint32, error) { return readGeneration(ctx, probe) })
	if errors.Is(err, database.ErrCorrupt) {
		err = guard.Changed(d.file.Name())
	}
	return probe, err
}
