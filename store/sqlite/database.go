package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite/connection"
	"example.com/providerd/store/sqlite/guard"
)

// Database is an open SQLite database.
type Database struct {
	dir string
	// isNew is set if the file was empty.
	isNew  bool
	logger *slog.Logger
	// schemaVersion is the latest one that this program knows.
	schemaVersion int64
	// file is the database file; files also include the -wal and -shm files.
	file  *guard.File
	files *guard.Guard
	// writers are for batches and checkpoints, changes for other transactions that write.
	writers database.Pool
	changes database.Pool
	readers database.Pool
	// failed is set when a batch could not use the database, and cleared when rows are stored or a probe succeeds.
	failed atomic.Bool
	// probing holds a value while a probe runs.
	probing     chan struct{}
	prepared    database.Prepared
	checkpoints checkpointCounts
	locks       lockWaits
	// inserting guards inserter, which is nil before the first Insert.
	inserting sync.Mutex
	inserter  *inserter
	// finder is one of the readers.
	finder connection.Statements
	// closeOnce calls close once and returns the same result every time.
	closeOnce func() error
}

var _ database.Database = (*Database)(nil)

// checkpointCounts counts checkpoints since the database was opened.
type checkpointCounts struct{ done, failed atomic.Uint64 }

// Dir returns the directory of the database, with symbolic links resolved.
func (d *Database) Dir() string { return d.dir }

// IsNew reports whether the file was missing or empty, so that Create created the database.
func (d *Database) IsNew() bool { return d.isNew }

// IsShared returns false: one server uses the files.
func (d *Database) IsShared() bool { return false }

// Reader returns a handle whose connections cannot write.
func (d *Database) Reader() *gorm.DB { return d.readers.GORM }

// Write runs statements, once, in a durable transaction, and checks the files before, in and after it.
func (d *Database) Write(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return withoutStop(func() error { return d.write(ctx, statements) })
}

func (d *Database) write(ctx context.Context, statements func(tx *gorm.DB) error) error {
	// The check of Commit may be an older one, which is enough for creates.
	if err := d.files.Check(); err != nil {
		return err
	}
	var tx *gorm.DB
	// After an error or a panic, the transaction would stay open and block all other writers.
	defer func() {
		if tx != nil {
			_ = tx.Rollback()
		}
	}()
	_, err := d.files.Commit(guard.Transaction{
		Begin: func() error {
			return untilLocked(func() error {
				begun := d.changes.GORM.WithContext(ctx).Begin()
				if begun.Error == nil {
					tx = begun
				}
				return begun.Error
			})
		},
		Run: func(resets bool) error {
			if err := d.CheckSchema(tx); err != nil {
				return err
			}
			if resets {
				if err := connection.IncrementGeneration(ctx, tx.Statement.ConnPool); err != nil {
					return err
				}
			}
			if err := check(tx); err != nil {
				return err
			}
			return statements(tx)
		},
		Commit: func() error { return connection.CommitError(tx.Commit().Error) },
	})
	return err
}

// Read runs statements on connections that cannot write. What is committed is on disk. The context does not interrupt
// them: with one that can end, the driver starts a goroutine for each statement.
func (d *Database) Read(ctx context.Context, statements func(tx *gorm.DB) error) error {
	if err := d.files.CheckUnlessRecent(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	err := d.Reader().WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := d.CheckSchema(tx); err != nil {
			return err
		}
		return statements(tx)
	})
	// What was read from changed files does not count.
	return cmp.Or(d.files.Check(), err) //nolint:wrapcheck // They are wrapped already.
}

// selectKey selects whether a record has a key, selectTaken also whether one has a client_id, and the schema version.
const (
	selectKey   = `SELECT EXISTS (SELECT 1 FROM providers WHERE created_by = ? AND kind = ? AND idempotency_key = ?)`
	selectTaken = selectKey + `, EXISTS (SELECT 1 FROM providers WHERE client_id = ?), (` + selectSchemaVersion + `)`
)

// SeesKey may rely on a recent check of the files.
func (d *Database) SeesKey(ctx context.Context, createdBy, kind, key string) bool {
	row, err := d.find(ctx, selectKey, createdBy, kind, key)
	return err == nil && row[0] == int64(1)
}

// Find checks the files after the search, because what was read from changed files does not count.
func (d *Database) Find(ctx context.Context, values database.Unique) (taken database.Taken, err error) {
	row, err := d.find(ctx, selectTaken, values.CreatedBy, values.Kind, values.IdempotencyKey, values.ClientID)
	if err := cmp.Or(d.files.Check(), err); err != nil {
		return taken, err //nolint:wrapcheck // They are wrapped already.
	}
	if version, _ := row[2].(int64); version > d.schemaVersion {
		return taken, d.CheckSchema(d.Reader().WithContext(ctx))
	}
	taken = database.Taken{IdempotencyKey: row[0] == int64(1), ClientID: row[1] == int64(1)}
	switch {
	case taken.IdempotencyKey:
		return taken, nil
	case d.failed.Load():
		return taken, d.probeWrite(ctx)
	default:
		return taken, d.prepared.Renew(func() error { return d.Prepare(ctx) })
	}
}

// find returns the row that a statement selects. The context does not interrupt it: see Read.
func (d *Database) find(ctx context.Context, text string, values ...string) (row []driver.Value, err error) {
	if err := d.files.CheckUnlessRecent(); err != nil {
		return nil, err
	}
	arguments := make([]driver.NamedValue, len(values))
	for n, value := range values {
		arguments[n] = driver.NamedValue{Ordinal: n + 1, Value: value}
	}
	err = d.finder.Query(context.WithoutCancel(ctx), text, func(selected []driver.Value) error {
		row = selected
		return nil
	}, arguments...)
	return row, connection.Classify(err)
}

// SettledEvent returns the last event: writes take turns, and are on disk before they are visible.
func (d *Database) SettledEvent(ctx context.Context, _ func(transaction string)) (end database.LogEnd, err error) {
	if err := d.files.Check(); err != nil {
		return end, err
	}
	err = d.Reader().WithContext(ctx).Raw("SELECT id, at FROM events ORDER BY id DESC LIMIT 1").Scan(&end).Error
	return end, database.Wrap("find the last event", err)
}

// Instance returns "", because no other server can take over.
func (*Database) Instance(*gorm.DB) (string, error) { return "", nil }

// Check checks the files and the schema version, at times the schema and last keys, and after a failure, writes.
func (d *Database) Check(ctx context.Context) error {
	_, err := d.Find(ctx, database.Unique{})
	return err
}

// Prepare checks that all tables have a higher key: each new key is above those in use.
func (d *Database) Prepare(ctx context.Context) error { return check(d.Reader().WithContext(ctx)) }

// Close waits for running statements and closes the database. A second call returns the same result.
//
// It returns database.ErrUnavailable if the files are no longer the opened ones. It then leaves the connections
// open, as if the process had been killed: closing the last one would make SQLite copy the WAL into any file that is
// now at the path, and delete the WAL.
func (d *Database) Close() error {
	return database.Wrap("close database", d.closeOnce())
}

func (d *Database) close() error {
	d.inserting.Lock()
	defer d.inserting.Unlock()
	if d.files != nil {
		if err := d.files.Check(); err != nil {
			return err
		}
	}
	var err error
	if d.inserter != nil {
		err = d.inserter.close()
	}
	if d.finder.Conn != nil {
		err = errors.Join(err, d.finder.Close())
	}
	err = errors.Join(err, database.ClosePools(d.readers, d.changes, d.writers))
	// Close the files last: closing any of them earlier would release the POSIX locks of SQLite.
	if d.files != nil {
		err = errors.Join(err, d.files.Close())
	}
	if d.file != nil {
		err = errors.Join(err, d.file.Close())
	}
	return err
}

// CheckSchema returns database.ErrNewer if this program does not know the schema version. Each transaction calls it: a
// newer program may have migrated the open database, and be unable to read what this one writes.
func (d *Database) CheckSchema(tx *gorm.DB) error {
	var version int64
	err := tx.Raw(selectSchemaVersion).Scan(&version).Error
	if err != nil && tx.Statement.Context.Err() == nil {
		err = fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	if version > d.schemaVersion {
		return fmt.Errorf("%w: %w: its schema version is %d, newer than this program's %d; use a newer providerd",
			database.ErrUnavailable, database.ErrNewer, version, d.schemaVersion)
	}
	return database.Wrap("read the schema version", err)
}
