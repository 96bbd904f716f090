package guard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"example.com/providerd/store/database"
)

// Magic is what every SQLite database begins with (https://sqlite.org/fileformat.html, section 1.3).
const Magic = "SQLite format 3\x00"

// File is an open file that its path must still refer to. Closing it would release the locks of SQLite.
type File struct {
	*os.File
	// Opened describes the file as it was opened.
	Opened fs.FileInfo
}

// Open opens a database file for reading. It returns ErrUnavailable if it is not regular, or a file system error.
func Open(path string) (*File, error) {
	// Do not wait for the writer of a FIFO.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("inspect the database files: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is not a regular file; pass the path of the database file",
			database.ErrUnavailable, path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &File{File: file, Opened: info}, nil
}

// changedError is an ErrUnavailable for the path of a file whose content does not match what SQLite wrote.
type changedError struct{ path string }

// Error says what to do.
func (e changedError) Error() string {
	return fmt.Sprintf("%v: %s does not match what SQLite wrote; stop every program that uses the database, restore "+
		"the original files (with an older copy of the database, remove the -wal and -shm files), and restart",
		database.ErrUnavailable, e.path)
}

// Unwrap returns ErrUnavailable.
func (changedError) Unwrap() error { return database.ErrUnavailable }

// Changed returns the ErrUnavailable for a file whose content does not match what SQLite wrote.
func Changed(path string) error { return changedError{path} }

func movedError(path string) error {
	return fmt.Errorf("%w: %s was removed or replaced while in use; stop every program that uses the database, restore "+
		"the original file, and restart", database.ErrReplaced, path)
}

// check returns the size of the file, or ErrReplaced if the path no longer leads to it.
func (f *File) check() (size int64, err error) {
	var now syscall.Stat_t
	err = syscall.Stat(f.Name(), &now)
	opened := f.Opened.Sys().(*syscall.Stat_t)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (now.Dev != opened.Dev || now.Ino != opened.Ino) {
		return 0, movedError(f.Name())
	}
	if err != nil {
		return 0, fmt.Errorf("%w: inspect %s: %w", database.ErrUnavailable, f.Name(), err)
	}
	return now.Size, nil
}

// read fills content and reports whether the file was long enough.
func (f *File) read(content []byte, offset int64) (isLong bool, err error) {
	count, err := f.ReadAt(content, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("%w: read %s: %w", database.ErrUnavailable, f.Name(), err)
	}
	return count == len(content), nil
}

// CheckGeneration compares the generation in the database file with the one that SQLite reads, which comes from the WAL
// if the page is there. A checkpoint copies one generation at a time, so the file is at most one behind. It returns
// ErrUnavailable if the files do not belong together, or the error of read.
func (f *File) CheckGeneration(read func() (uint32, error)) error {
	for number := range maxReads {
		before, err := f.generation()
		if err != nil {
			return err
		}
		current, err := read()
		if err != nil {
			return err
		}
		after, err := f.generation()
		if err != nil {
			return err
		}
		if current == after || current == after+1 {
			return nil
		}
		if before == after {
			return changedError{f.Name()}
		}
		waitToReread(number)
	}
	return inconsistentError(f)
}

// generation reads the generation, SQLite's user_version, and checks that the file is a database.
func (f *File) generation() (uint32, error) {
	const userVersion = 60
	var header [userVersion + 4]byte
	isLong, err := f.read(header[:], 0)
	if err != nil {
		return 0, err
	}
	if !isLong || string(header[:len(Magic)]) != Magic {
		return 0, changedError{f.Name()}
	}
	return binary.BigEndian.Uint32(header[userVersion:]), nil
}
