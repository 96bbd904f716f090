package connection

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
	"example.com/providerd/store/sqlite/guard"
)

// ApplicationID is the application_id in the header of providerd's databases ("pvdd" in ASCII).
const ApplicationID = 0x70766464

// Header is what a database file shows without SQLite: whether it is empty, or has one page and so no tables.
type Header struct{ IsBlank, IsOnePage bool }

// ReadHeader reads the header of a database file, and so changes nothing. It returns database.ErrForeign for a database
// of another program, ErrCorrupt if the file is not a database, the errors of checkHasWAL, or a file system error.
func ReadHeader(file *os.File) (Header, error) {
	const pageSize, journal, idTill, walMode = 16, 18, 72, 2
	// The size comes first: a new database has its header before a checkpoint enlarges the file.
	info, err := file.Stat()
	if err != nil {
		return Header{}, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	text, err := io.ReadAll(io.NewSectionReader(file, 0, idTill))
	switch {
	case err != nil:
		return Header{}, fmt.Errorf("read %s: %w", file.Name(), err)
	case len(text) == 0:
		return Header{true, true}, nil
	case len(text) < idTill || !bytes.HasPrefix(text, []byte(guard.Magic)):
		return Header{}, fmt.Errorf("%s: %w: file is not a database", file.Name(), database.ErrCorrupt)
	}
	id := binary.BigEndian.Uint32(text[idTill-4:])
	found := Header{id == 0, info.Size() <= int64(binary.BigEndian.Uint16(text[pageSize:]))}
	switch {
	case id != ApplicationID && (id != 0 || !found.IsOnePage):
		return found, fmt.Errorf("%w: %s has application_id %d", database.ErrForeign, file.Name(), id)
	case !found.IsBlank && found.IsOnePage && text[journal] == walMode:
		return found, checkHasWAL(file.Name())
	}
	return found, nil
}

// checkHasWAL returns database.ErrUnavailable if the WAL of a database without tables, which has them, is missing.
func checkHasWAL(path string) error {
	if wal, err := SizeOf(path + "-wal"); err != nil || wal >= 0 {
		return err
	}
	return fmt.Errorf("%w: %s has no tables, like a copy of a new database without its -wal file; copy the database with "+
		"\"providerd backup\", or delete the file if its creation was interrupted", database.ErrUnavailable, path)
}

// OpenFile opens a database file that only its owner can write to. It returns ErrUnavailable, ErrInsecureMode
// or a file system error.
func OpenFile(path string) (*guard.File, error) {
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

// CreateFile creates the database file if there is none. It returns a file system error.
func CreateFile(path string) error {
	file, err := files.OpenOrCreate(path, 0)
	if err == nil {
		err = file.Close()
	}
	return database.Wrap("open or create the database", err)
}

// CheckNoOrphanWAL returns ErrUnavailable if the database is missing but its WAL exists, which SQLite would delete. It
// checks the WAL first, because SQLite writes to a new database before the WAL.
func CheckNoOrphanWAL(path string) error {
	if wal, err := os.Stat(path + "-wal"); err != nil || wal.Size() == 0 {
		return nil //nolint:nilerr // There is no WAL.
	}
	if info, err := os.Stat(path); err == nil && info.Size() > 0 {
		return nil
	}
	return fmt.Errorf("%w: %s is missing or empty, but its WAL, which contains the newest changes, exists; restore the "+
		"database file, or move the -wal and -shm files away to start with a new database", database.ErrUnavailable, path)
}

// SizeOf returns the size of a file in bytes, or -1 if it does not exist.
func SizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil:
		return info.Size(), nil
	case errors.Is(err, os.ErrNotExist):
		return -1, nil
	default:
		return 0, fmt.Errorf("inspect the database files: %w", err)
	}
}

// MinFreeBytes is what the largest create takes in the WAL and, after the next checkpoint, in the database.
const MinFreeBytes = 4 << 20

// FreeBytes returns the free space on the disk of a directory.
func FreeBytes(dir string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("%w: check the disk space of %s: %w", database.ErrUnavailable, dir, err)
	}
	return int64(disk.Bavail) * disk.Bsize, nil //nolint:gosec // No disk has 8 EiB.
}

// RequireFree returns ErrFull if the disk of a directory lacks the space for a file of a size and the largest create.
func RequireFree(dir string, size int64) error {
	free, err := FreeBytes(dir)
	if want := size + MinFreeBytes; err == nil && free < want {
		err = fmt.Errorf("%w: the disk of %s has %d MiB free, but %d MiB are needed",
			database.ErrFull, dir, free>>20, want>>20+1)
	}
	return err
}
