// Package database defines the interfaces between the store and its databases, their errors, and what they share for
// connection pools and schemas. It contains no statements about providers, no driver and no dialect. Each database has
// its own package, which opens it, migrates its schema to the version of this program, and returns a Database.
//
// Start with Database in database.go; creates go through Insert.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var (
	// ErrUnavailable means that the database is unreachable, locked, damaged or out of space. Nothing was stored.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrCorrupt means that the database file is damaged or is not a database. It wraps ErrUnavailable.
	ErrCorrupt = fmt.Errorf("%w: database file is damaged", ErrUnavailable)
	// ErrReplaced means that another database has taken the place of the one that was opened. It wraps ErrUnavailable.
	ErrReplaced = fmt.Errorf("%w", ErrUnavailable)
	// ErrLocked means that other transactions did not release a lock in time. It wraps ErrUnavailable.
	ErrLocked = fmt.Errorf("%w: lock not available", ErrUnavailable)
	// ErrFull means that the disk of the database is full. It wraps ErrUnavailable.
	ErrFull = fmt.Errorf("%w: no space left", ErrUnavailable)
	// ErrNoConnection means that no server was reached or accepted the login. It wraps ErrUnavailable.
	ErrNoConnection = fmt.Errorf("%w: no connection", ErrUnavailable)
	// ErrUnsafe means that the server's settings could lose commits or change values. It wraps ErrUnavailable.
	ErrUnsafe = fmt.Errorf("%w: unsafe server", ErrUnavailable)
	// ErrOutcomeUnknown means that a commit was sent but its result is not known.
	ErrOutcomeUnknown = errors.New("outcome of the commit is unknown")
	// ErrInsertApart means that nothing was inserted because of a row: the database refuses a value, or other statements
	// waited for this one. Insert fewer rows at a time.
	ErrInsertApart = errors.New("rows cannot be inserted together")
	// ErrNoDatabase means that there is no providerd database at the given path or URL.
	ErrNoDatabase = errors.New("no providerd database")
	// ErrForeign means that the database belongs to another program.
	ErrForeign = errors.New("not a providerd database")
	// ErrInsecureMode means that users other than its owner can write to the database.
	ErrInsecureMode = errors.New("other users can write to the database")
	// ErrInUse means that a program has the database open, or left files of it behind.
	ErrInUse = errors.New("database is in use")
	// ErrOlder means that the database must be migrated before this version of providerd can use it.
	ErrOlder = errors.New("database must be migrated")
	// ErrNotFound means that there is no such record.
	ErrNotFound = errors.New("no such record")
	// ErrNewer means that the database was written by a later version of providerd.
	ErrNewer = errors.New("database is from a newer version of providerd")
)

// Wrap adds what was being done, or with what, to an error; nil stays nil.
func Wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Readable is an open database, or a database file that no program changes.
type Readable interface {
	// Reader returns a handle for read statements. Each is its own transaction and must be short, because a database may
	// have to keep every version that a reader can see.
	Reader() *gorm.DB
}

// Database is an open database with this program's schema. It is safe for concurrent use.
//
// Errors of its GORM handles wrap ErrUnavailable if the database could not be used, or are ErrNotFound or
// gorm.ErrDuplicatedKey. Any other error is a bug in this program. Methods that run statements return their errors or
// ErrUnavailable; Write and Load also return ErrOutcomeUnknown.
type Database interface {
	Readable
	// IsShared reports whether replicas of this program use the database, so that concurrent inserts are worthwhile.
	IsShared() bool
	// Read runs read statements in one transaction, which sees one state of the database. It returns nil only if what they
	// have read will survive the loss of the server. They may run again.
	Read(ctx context.Context, statements func(tx *gorm.DB) error) error
	// Write runs statements in one transaction. If it returns nil, they are on disk; if it returns any error except
	// ErrOutcomeUnknown, none of them is. They may be rolled back and run again. Processes take turns.
	Write(ctx context.Context, statements func(tx *gorm.DB) error) error
	// Load is like Write, but runs the statements once, however long they take, need not take turns, and advances the keys
	// after them.
	Load(ctx context.Context, statements func(tx *gorm.DB) error) error
	// Snapshot is like Read, except that what it has read can be lost, and that it can last long and blocks no writer.
	Snapshot(ctx context.Context, statements func(tx *gorm.DB) error) error
	// Prepare makes the tables generate only keys above those in use and those of deleted providers, which rows that other
	// programs copy do not. Write does so first. It returns ErrUnavailable, also if there is no higher key, or the schema
	// lacks what keeps creates single and in the log.
	Prepare(ctx context.Context) error
	// NewPKs returns pks for new providers in a transaction of Write, above all that were given.
	NewPKs(tx *gorm.DB, count int) ([]int64, error)
	// Insert inserts rows with one statement, which skips those with a unique value that is taken, and all if the keyset
	// has another version. It returns the pks of the inserted rows by uid, once they are on disk.
	//
	// It returns ErrInsertApart, ErrUnavailable or ErrOutcomeUnknown.
	Insert(ctx context.Context, rows Insertion) (pks map[uuid.UUID]int64, err error)
	// SeesKey reports whether a record has an idempotency key. It is a hint that saves retries an insert: the record may
	// be lost or deleted, and unless the database responds within a second, it reports false.
	SeesKey(ctx context.Context, createdBy, kind, key string) bool
	// Find reports which unique values records have, which will survive the loss of the server. It returns ErrUnavailable,
	// also if creates cannot be stored now, unless the idempotency key is taken.
	Find(ctx context.Context, values Unique) (Taken, error)
	// CheckSchema returns ErrUnavailable and ErrNewer if a later program has migrated the database.
	CheckSchema(tx *gorm.DB) error
	// Instance identifies the server that runs a transaction. Another one, which takes over, may lack what was committed.
	Instance(tx *gorm.DB) (string, error)
	// SettledEvent returns the last event of the log, before which none is committed later. It waits until every
	// transaction has ended that may have the id of an earlier event, and calls waiting if one takes long, with a
	// description of it. It returns ErrUnavailable.
	SettledEvent(ctx context.Context, waiting func(transaction string)) (LogEnd, error)
	// Check returns ErrUnavailable if creates cannot be stored now. After a failed create, it tests this by writing.
	Check(ctx context.Context) error
	// Stats returns statistics for monitoring.
	Stats() Stats
	// Close releases the database. It returns ErrUnavailable if it leaves the files as they are for an operator to repair.
	Close() error
}

// LogEnd is the last event of the log, on the server that Instance identifies.
type LogEnd struct {
	ID int64
	// At is when it happened.
	At       Time
	Instance string
}

// Insertion is rows for a table with the columns uid and pk.
type Insertion struct {
	Table   string
	Columns []string
	// Rows are values in the order of the columns, of which the first is uid: string (also for JSON), int64, bool,
	// time.Time in UTC, uuid.UUID, []byte or nil.
	Rows [][]any
	// KeysetVersion is the version of the keys that have sealed the rows.
	KeysetVersion []byte
	// IsApart is set for rows of an insert that returned ErrInsertApart, so that they do not wait for others again.
	IsApart bool
}

// Unique is the unique values of a create, "" for none. The idempotency key belongs to the caller and the kind.
type Unique struct{ CreatedBy, Kind, IdempotencyKey, ClientID string }

// Taken reports which of them records have.
type Taken struct{ IdempotencyKey, ClientID bool }

// Stats are statistics of an open database at one moment.
type Stats struct {
	// Readers and Writers are the statistics of the connections that read, and of those that write.
	Readers, Writers sql.DBStats
	// FreeBytes is the free space on the disk of an embedded database; nil if there is none, or it cannot be read.
	FreeBytes *int64
	// WAL is nil if the database server manages its own WAL, or if the files cannot be used.
	WAL *WALStats
	// LockWait is how long inserts have waited for the lock of an embedded database, which other programs held; nil if
	// there is none. IsContended is set if they waited for most of the last seconds.
	LockWait    *time.Duration
	IsContended bool
}

// WALStats are statistics of the write-ahead log (WAL) of an embedded database.
type WALStats struct {
	// Pages is the number of pages in the WAL, and CopiedPages the number already copied to the database file.
	Pages, CopiedPages uint32
	// Checkpoints and FailedCheckpoints count the checkpoints since the database was opened.
	Checkpoints, FailedCheckpoints uint64
}

// View is a database opened for inspection, whatever its state. It creates and changes nothing, and blocks no one.
type View interface {
	Readable
	// Schema returns the schema version. It returns ErrNoDatabase if there are no tables, ErrForeign or ErrUnavailable.
	Schema(ctx context.Context) (Schema, error)
	// Check reports whether Prepare has keys to advance, and its errors, in a database of this program's schema version.
	Check(ctx context.Context) (isBehind bool, err error)
	// Close releases the database.
	Close() error
}

// Time is a time in UTC in whole microseconds: an integer since 1970 in SQLite, and a timestamptz in PostgreSQL.
type Time struct{ time.Time }

// TimeOf returns a time in UTC in whole microseconds.
func TimeOf(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// Now returns the time in the precision of every database.
func Now() Time { return TimeOf(time.Now()) }

// Scan implements sql.Scanner for both databases.
func (t *Time) Scan(stored any) error {
	switch stored := stored.(type) {
	case int64:
		t.Time = time.UnixMicro(stored).UTC()
	case time.Time:
		t.Time = stored.UTC()
	default:
		return fmt.Errorf("value is not a time but a %T", stored)
	}
	return nil
}

// GormDataType implements schema.GormDataTypeInterface.
func (Time) GormDataType() string { return "time" }

// GormValue implements gorm.Valuer for both databases.
func (t Time) GormValue(_ context.Context, db *gorm.DB) clause.Expr {
	var value any = t.Time
	if db.Name() == "sqlite" {
		value = t.UnixMicro()
	}
	return clause.Expr{SQL: "?", Vars: []any{value}}
}
