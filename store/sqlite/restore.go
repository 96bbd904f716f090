package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
	"example.com/providerd/store/sqlite/connection"
	"example.com/providerd/store/sqlite/guard"
)

// Restoration replaces a database with a copy of a backup.
type Restoration struct {
	// Backup and Database are paths.
	Backup, Database string
	// Replace allows an existing database to be replaced.
	Replace  bool
	Progress Progress
	Check    Check
	// Restored writes to the copy once it is verified.
	Restored func(tx *gorm.DB) error
}

// Run copies the backup, verifies the copy as Backup does, and gives it the name of the database. An existing database
// is kept under another name, which contains the time and is returned. If Run fails, nothing has changed. If root runs
// it, the database belongs to the owner of the file that it replaces, or else to the owner of the directory, whose
// server must be able to read it.
//
// It returns database.ErrForeign, ErrNewer or ErrOlder if the file is not a backup of this version, ErrUnavailable if
// it is damaged, fs.ErrExist if there is a database and Replace is not set, ErrInUse if a program has the database open
// or has left files next to it, ErrReservedName, the error of the check or ctx, an error that describes how the schema
// differs from its version, or a file system error.
func (r Restoration) Run(ctx context.Context) (kept string, err error) {
	size, err := r.checkBackup()
	if err != nil {
		return "", err
	}
	target, err := r.resolveTarget()
	if err != nil {
		return "", err
	}
	if _, err := r.checkTarget(target); err != nil {
		return "", err
	}
	if err := connection.RequireFree(filepath.Dir(target), size); err != nil {
		return "", err
	}
	draft, err := files.CreateDraftOver(target)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, draft.Cleanup()) }()
	if err := r.copy(ctx, draft); err != nil {
		return "", fmt.Errorf("copy %s: %w", r.Backup, connection.Classify(err))
	}
	err = verify(ctx, draft.Name(), r.Backup, nil, func(copied database.Readable) error {
		if err := r.checkSchema(ctx, copied); err != nil {
			return err
		}
		return r.Check(copied)
	})
	if err == nil {
		err = r.change(ctx, draft)
	}
	if err != nil {
		return "", err
	}
	err = files.WithLock(ctx, filepath.Dir(target), func() error {
		kept, err = r.swap(draft, target)
		return err
	})
	return kept, err
}

// checkBackup returns the size of the backup, and checks that no WAL or rollback journal belongs to it.
func (r Restoration) checkBackup() (size int64, err error) {
	// Do not wait for the writer of a FIFO.
	backup, err := os.OpenFile(r.Backup, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, fmt.Errorf("open the backup: %w", err)
	}
	defer func() { err = errors.Join(err, backup.Close()) }()
	info, err := backup.Stat()
	if err != nil {
		return 0, fmt.Errorf("open the backup: %w", err)
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%w: %s is not a regular file", database.ErrForeign, r.Backup)
	}
	header, err := connection.ReadHeader(backup)
	switch {
	case errors.Is(err, database.ErrCorrupt):
		return 0, fmt.Errorf("%w: %s is not a SQLite database", database.ErrForeign, r.Backup)
	case err != nil:
		return 0, err
	case header.IsBlank:
		return 0, fmt.Errorf("%w: %s is empty", database.ErrForeign, r.Backup)
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if beside, err := os.Stat(r.Backup + suffix); err == nil && beside.Size() > 0 {
			return 0, fmt.Errorf("%w: %s holds changes that the backup lacks; use a backup that no program has written to",
				database.ErrInUse, r.Backup+suffix)
		}
	}
	return info.Size(), nil
}

// resolveTarget returns the path of the file of the database, and creates its directory if it is missing.
func (r Restoration) resolveTarget() (string, error) {
	if err := CheckName(files.Resolve(r.Database)); err != nil {
		return "", err
	}
	path, err := filepath.EvalSymlinks(r.Database)
	if errors.Is(err, fs.ErrNotExist) {
		return r.Database, files.CreateDir(filepath.Dir(r.Database))
	}
	return path, database.Wrap("find the database", err)
}

// checkTarget reports whether there is a database, and returns an error if it must not be replaced.
func (r Restoration) checkTarget(target string) (exists bool, err error) {
	exists, err = files.Exists(target)
	if err != nil {
		return false, err
	}
	if exists {
		if err := checkUnused(target); err != nil {
			return false, err
		}
	}
	for _, suffix := range sidecars() {
		isLeft, err := files.Exists(target + suffix)
		if err != nil {
			return false, err
		}
		if isLeft {
			return false, fmt.Errorf("%w: %s was left by a program that was killed; start and stop "+
				"\"providerd serve\" to recover it, or move it away together with the database",
				database.ErrInUse, target+suffix)
		}
	}
	if exists && !r.Replace {
		return false, fmt.Errorf("%w: %s; pass --replace to replace it and keep the old one under another name", fs.ErrExist,
			target)
	}
	return exists, nil
}

// checkUnused returns ErrInUse if a program has the database open.
func checkUnused(path string) error {
	file, err := guard.Open(path)
	if err != nil {
		return err
	}
	inUse, err := file.IsInUse()
	if err == nil && inUse {
		err = fmt.Errorf("%w: %s; stop the server and every other program that has it open", database.ErrInUse, path)
	}
	return errors.Join(err, file.Close())
}

func (r Restoration) copy(ctx context.Context, draft *files.Draft) (err error) {
	pool, err := connection.OpenImmutable(r.Backup)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.ClosePools(pool)) }()
	from, err := pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("read it: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	pages := pageCopy{from: from, draft: draft, progress: r.Progress}
	return pages.copy(ctx)
}

// change calls Restored. No other program knows the file, so it needs no locks. Without WAL mode (file format, section
// 1.3.3), which a server turns on again, SQLite writes no other file.
func (r Restoration) change(ctx context.Context, draft *files.Draft) error {
	const versions = 18
	if _, err := draft.WriteAt([]byte{1, 1}, versions); err != nil {
		return fmt.Errorf("write %s: %w", draft.Name(), err)
	}
	pool, err := connection.OpenWith(draft.Name(), "mode=rw&nolock=1&_journal_mode=MEMORY&_synchronous=OFF&_mutex=no")
	if err != nil {
		return err
	}
	return errors.Join(r.Restored(pool.GORM.WithContext(ctx)), database.ClosePools(pool))
}

// checkSchema returns an error if the backup does not have the schema of this program.
func (r Restoration) checkSchema(ctx context.Context, copied database.Readable) error {
	pool, err := copied.Reader().DB()
	if err != nil {
		return fmt.Errorf("read %s: %w", r.Backup, err)
	}
	schema, err := readSchema(ctx, pool, r.Backup)
	if err == nil {
		err = database.Wrap(r.Backup, schema.Check())
	}
	if err != nil {
		return err
	}
	found, err := readFaults(copied.Reader().WithContext(ctx))
	if err != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("%s has schema version %d but differs from what this program creates: %s; use an earlier backup",
		r.Backup, schema.Version, strings.Join(found, ", "))
}

// swap gives the draft the name of the database. The caller holds the lock of the directory, so no other program opens
// a database there.
func (r Restoration) swap(draft *files.Draft, target string) (kept string, err error) {
	exists, err := r.checkTarget(target)
	if err != nil {
		return "", err
	}
	owner, err := files.OwnerFor(target)
	if err != nil {
		return "", err
	}
	if err := files.Chown(draft.File, owner); err != nil {
		return "", err
	}
	if !exists {
		return "", draft.Publish()
	}
	if err := removeLeftovers(target, draft.Name()); err != nil {
		return "", err
	}
	name := target + "." + replaced + "-" + time.Now().UTC().Format("20060102T150405Z")
	kept = name
	for number := 2; ; number++ {
		if err := draft.Replace(kept); !errors.Is(err, fs.ErrExist) {
			return kept, err
		}
		kept = fmt.Sprintf("%s-%d", name, number)
	}
}
