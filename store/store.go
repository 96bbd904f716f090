package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"

	"gorm.io/gorm"
)

// Store keeps providers, applications and tokens in one database.
type Store struct {
	folder string
	logger *slog.Logger
	writer *gorm.DB
	reader *gorm.DB
	// database is the file, and files are it and SQLite's own beside it.
	database *guardedFile
	files    *guard
	// keyring has the keys that secrets are sealed with.
	keyring *keyring
	tokens  tokenCache
	// creates is where every create enters the writer.
	creates *writer
	closing sync.Once
	// closeError is what closing gave.
	closeError error
}

// Folder is that of the database, symbolic links resolved.
func (s *Store) Folder() string { return s.folder }

// Ping reads from the database and, where the last create failed for want of it, writes to it. It returns ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.files.check(); err != nil {
		return err
	}
	if _, err := s.keyring.current(); err != nil {
		return errors.Join(ErrUnavailable, err)
	}
	if s.creates.failed.Load() {
		return s.tryToWrite(ctx)
	}
	_, err := s.HasTokens(ctx)
	return err
}

// minFreeBytes are what the largest create takes in the WAL and, after the next checkpoint, in the database.
const minFreeBytes = 4 << 20

// tryToWrite commits a page that stays as it is, on a disk that has room for any create. A server that is not ready may
// get no create that would tell.
func (s *Store) tryToWrite(ctx context.Context) error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(s.folder, &disk); err != nil {
		return fmt.Errorf("%w: look at the disk: %w", ErrUnavailable, err)
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < minFreeBytes { //nolint:gosec // A size is not negative.
		return fmt.Errorf("%w: the disk of %s has %d bytes left, want %d", ErrUnavailable, s.folder, free, minFreeBytes)
	}
	err := s.write(ctx, func(tx *gorm.DB) error {
		var generation uint32
		if err := tx.Raw(selectGeneration).Scan(&generation).Error; err != nil {
			return err
		}
		return tx.Exec(setGeneration(generation)).Error
	})
	if err != nil {
		return errors.Join(ErrUnavailable, err)
	}
	s.creates.failed.Store(false)
	return nil
}

// Close stores the creates that wait, waits for running statements and releases the database.
//
// It returns ErrUnavailable where the files of the database are no longer those that were opened. It does not release
// them then, as if the process had been killed: SQLite would copy the WAL into whatever is in the database's place, and
// remove it. A second call returns what the first did.
func (s *Store) Close() error {
	s.closing.Do(func() {
		if err := s.close(); err != nil {
			s.closeError = fmt.Errorf("close database: %w", err)
		}
	})
	return s.closeError
}

func (s *Store) close() error {
	var errs []error
	if s.creates != nil {
		errs = append(errs, s.creates.close())
	}
	if s.files != nil {
		if err := s.files.check(); err != nil {
			return err
		}
	}
	errs = append(errs, closePool(s.reader), closePool(s.writer))
	// The files go last: closed earlier, they would take the locks of SQLite with them.
	if s.files != nil {
		errs = append(errs, s.files.close())
	}
	if s.database != nil {
		errs = append(errs, s.database.Close())
	}
	return errors.Join(errs...)
}

func closePool(db *gorm.DB) error {
	if db == nil {
		return nil
	}
	pool, err := db.DB()
	if err != nil {
		return fmt.Errorf("find connections: %w", err)
	}
	if err := pool.Close(); err != nil {
		return fmt.Errorf("close connections: %w", err)
	}
	return nil
}
