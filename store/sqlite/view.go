package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
	"example.com/providerd/store/sqlite/connection"
	"example.com/providerd/store/sqlite/guard"
)

// View is a SQLite database opened for inspection. It is never written to.
type View struct {
	// file stays open as long as SQLite has it open: closing it would release the locks of SQLite.
	file    *guard.File
	reader  database.Pool
	isInUse bool
}

var _ database.View = (*View)(nil)

// OpenReadOnly opens the database at path for reading, regardless of its state. It creates and changes no files, takes
// no lock on the directory and blocks no other program. If other programs have the database open, it reads like any of
// their readers; otherwise it reads the files as they are on disk.
//
// It returns database.ErrNoDatabase, ErrUnavailable if the file is not a database, was removed or replaced while other
// programs use it, or has a WAL that cannot be read or belongs to another database, or a file system error.
func OpenReadOnly(ctx context.Context, path string) (*View, error) {
	if err := connection.CheckNoOrphanWAL(files.Resolve(path)); err != nil {
		return nil, err
	}
	if err := checkExists(path); err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("find the database: %w", err)
	}
	file, err := guard.Open(path)
	if err != nil {
		return nil, err
	}
	view := &View{file: file}
	if err := view.open(ctx); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	return view, nil
}

func (v *View) open(ctx context.Context) (err error) {
	if v.isInUse, err = guard.CheckUse(ctx, v.file); err != nil {
		return err
	}
	if header, err := connection.ReadHeader(v.file.File); header.IsOnePage && errors.Is(err, database.ErrUnavailable) {
		return err
	}
	hasWAL, err := v.hasWAL()
	if err != nil {
		return err
	}
	// SQLite reads a WAL through the existing wal-index, without changing it, or through one in memory if no other program
	// keeps it up to date. If there is no WAL, it would create one unless the file is declared immutable.
	if hasWAL {
		v.reader, err = connection.OpenReadOnly(v.file.Name())
	} else {
		v.reader, err = connection.OpenImmutable(v.file.Name())
	}
	if err != nil {
		return database.Wrap(v.file.Name(), err)
	}
	var id int
	if err := v.reader.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return fmt.Errorf("read database %s: %w", v.file.Name(), connection.Classify(err))
	}
	if !hasWAL || id != connection.ApplicationID {
		return nil
	}
	return v.file.CheckGeneration(func() (uint32, error) { return connection.ReadGeneration(ctx, v.reader) })
}

// hasWAL reports whether there is a WAL to read, or returns ErrUnavailable if a writer must rebuild its wal-index.
func (v *View) hasWAL() (bool, error) {
	wal, err := connection.SizeOf(v.file.Name() + "-wal")
	if err != nil || wal < 0 {
		return false, err
	}
	index, err := connection.SizeOf(v.file.Name() + "-shm")
	if err != nil {
		return false, err
	}
	if index < 0 && wal > 0 {
		return false, fmt.Errorf("%w: %s-wal exists without its -shm file; run \"providerd serve\" to "+
			"rebuild it", database.ErrUnavailable, v.file.Name())
	}
	return index >= 0, nil
}

// IsInUse reports whether another program had the database open when it was opened.
func (v *View) IsInUse() bool { return v.isInUse }

// Reader returns a handle to the only connection.
func (v *View) Reader() *gorm.DB { return v.reader.GORM }

// Schema returns the schema version of the database and the migrations that this program knows.
func (v *View) Schema(ctx context.Context) (database.Schema, error) {
	return readSchema(ctx, v.reader.DB, v.file.Name())
}

// Check returns the errors of Prepare.
func (v *View) Check(ctx context.Context) (isBehind bool, err error) {
	return false, check(v.Reader().WithContext(ctx))
}

// CheckIntegrity makes SQLite check every page, row and index. It returns database.ErrCorrupt with what it finds.
func (v *View) CheckIntegrity(ctx context.Context) error { return checkIntegrity(ctx, v.reader.DB) }

// Close closes the database and leaves its files unchanged.
func (v *View) Close() error {
	return errors.Join(database.ClosePools(v.reader), v.file.Close())
}

// Check inspects a copy before it is linked to its name. If it returns an error, the copy is discarded.
type Check func(copied database.Readable) error

// verify checks that the file at path is an intact database of a schema version that this program knows, that its
// tables have as many rows as in rows, unless that is nil, and that it passes check. Errors refer to the file as name.
func verify(ctx context.Context, path, name string, rows map[string]int64, check Check) (err error) {
	pool, err := connection.OpenImmutable(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, database.ClosePools(pool)) }()
	if err := checkSchema(database.Schema.CheckKnown)(ctx, pool.DB, name); err != nil {
		return err
	}
	if err := checkIntegrity(ctx, pool.DB); err != nil {
		return fmt.Errorf("check %s: %w", name, err)
	}
	if rows != nil {
		found, err := countRows(pool.GORM.WithContext(ctx))
		if err != nil {
			return fmt.Errorf("check %s: %w", name, err)
		}
		if !maps.Equal(found, rows) {
			return fmt.Errorf("%w: row counts differ: %s has %v, the database has %v",
				database.ErrUnavailable, name, found, rows)
		}
	}
	return check(pool)
}

// checkIntegrity makes SQLite check every page, row and index.
func checkIntegrity(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return connection.Classify(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", database.ErrCorrupt, strings.ReplaceAll(verdict, "\n", " "))
	}
	return nil
}

// countRows returns the number of rows of each table.
func countRows(db *gorm.DB) (map[string]int64, error) {
	var tables []string
	if err := db.Raw("SELECT name FROM sqlite_master WHERE type = 'table'").Scan(&tables).Error; err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	counts := make(map[string]int64, len(tables))
	for _, table := range tables {
		var count int64
		// GORM does not quote a name that contains a space.
		quoted := `"` + strings.ReplaceAll(table, `"`, `""`) + `"`
		if err := db.Raw("SELECT count(*) FROM " + quoted).Scan(&count).Error; err != nil {
			return nil, fmt.Errorf("count the rows of %s: %w", table, err)
		}
		counts[table] = count
	}
	return counts, nil
}
