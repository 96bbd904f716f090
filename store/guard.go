package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// sqliteMagic is how every SQLite database begins.
const sqliteMagic = "SQLite format 3\x00"

// guard notices that the files of a database are no longer in their place. SQLite does not: it goes on writing to a
// file that was removed, and what it commits there is lost with the process.
type guard struct {
	paths []string
	// opened are the files as they were when the database was opened.
	opened []os.FileInfo
	// database is kept open as long as SQLite has the file: to close it would release the locks that SQLite holds.
	database *os.File
}

// newGuard remembers the files of a database that is open.
func newGuard(path string) (*guard, error) {
	g := &guard{paths: []string{path, path + "-wal"}}
	for _, one := range g.paths {
		info, err := os.Stat(one)
		if err != nil {
			return nil, fmt.Errorf("look at the files of the database: %w", err)
		}
		g.opened = append(g.opened, info)
	}
	var err error
	if g.database, err = os.Open(path); err != nil {
		return nil, fmt.Errorf("look at the files of the database: %w", err)
	}
	return g, nil
}

// check returns ErrUnavailable where a file was removed, replaced or overwritten.
func (g *guard) check() error {
	for i, path := range g.paths {
		info, err := os.Stat(path)
		if err != nil || !os.SameFile(info, g.opened[i]) {
			return errors.Join(fmt.Errorf("%w: %s was removed or replaced; restart the server over the right file",
				ErrUnavailable, path), err)
		}
	}
	beginning := make([]byte, len(sqliteMagic))
	if _, err := g.database.ReadAt(beginning, 0); err != nil || !bytes.Equal(beginning, []byte(sqliteMagic)) {
		return errors.Join(fmt.Errorf("%w: %s was overwritten", ErrUnavailable, g.paths[0]), err)
	}
	return nil
}

// sync puts on disk what was written to the file of the database, by whichever descriptor.
func (g *guard) sync() error {
	if err := g.database.Sync(); err != nil {
		return fmt.Errorf("sync the database: %w", err)
	}
	return nil
}

func (g *guard) close() error {
	if err := g.database.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("close the file of the database: %w", err)
	}
	return nil
}
