package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"

	"gorm.io/gorm"
)

// readGeneration reads the generation of a database, from the WAL if the page is there. It is the user_version, which
// SQLite stores at a fixed offset in the database header. Each transaction that resets the WAL increments it, so that
// an older copy of the file can be distinguished from the current one.
func readGeneration(ctx context.Context, db gorm.ConnPool) (uint32, error) {
	var version int32
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("read the generation of the database: %w", classify(err))
	}
	return uint32(version), nil //nolint:gosec // Only the bits matter.
}

// setGeneration writes the generation. SQLite reads and writes user_version as a signed number.
func setGeneration(ctx context.Context, db gorm.ConnPool, generation uint32) error {
	//nolint:gosec // Only the bits matter.
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", int32(generation))); err != nil {
		return fmt.Errorf("write the generation of the database: %w", classify(err))
	}
	return nil
}

// incrementGeneration increments the generation if a checkpoint has copied the whole WAL, because the next write resets
// the WAL. It must be called before the transaction writes anything else.
func incrementGeneration(ctx context.Context, files *guard, tx gorm.ConnPool) error {
	isBackfilled, err := files.isBackfilled()
	if err != nil || !isBackfilled {
		return err
	}
	generation, err := readGeneration(ctx, tx)
	if err != nil {
		return err
	}
	return setGeneration(ctx, tx, generation+1)
}

// checkGeneration compares the generation in the database file with the one that SQLite reads, which comes from the WAL
// if the page is there. A checkpoint copies one generation at a time, so the file is at most one behind. It returns
// ErrUnavailable if the files do not belong together, or the error of read.
func (f *guardedFile) checkGeneration(read func() (uint32, error)) error {
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

// generation reads the generation, which is SQLite's user_version, from the header of the database, and checks that the
// file is a database.
func (f *guardedFile) generation() (uint32, error) {
	const userVersion = 60
	var header [userVersion + 4]byte
	isLong, err := f.read(header[:], 0)
	if err != nil {
		return 0, err
	}
	if !isLong || string(header[:len(magic)]) != magic {
		return 0, changedError{f.Name()}
	}
	return binary.BigEndian.Uint32(header[userVersion:]), nil
}
