// Package database defines the interfaces between the store and its databases, their errors, and what they share for
// connection pools and schemas. It contains no statements about providers, no driver and no dialect. Each database has
// its own package, which opens it, migrates its schema to the version of this program, and returns a Database.
//
// Start with Database in database.go; creates go through Batches and Batch.
package database

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
)

var (
	// ErrUnavailable means that the database cannot be used at the moment: it is unreachable, locked, damaged or out of
	// space. Nothing was stored.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrCorrupt means that the database file is damaged or is not a database. It wraps ErrUnavailable.
	ErrCorrupt = fmt.Errorf("%w: database file is damaged", ErrUnavailable)
	// ErrLocked means that other transactions did not release a lock in time. It wraps ErrUnavailable.
	ErrLocked = fmt.Errorf("%w: lock not available", ErrUnavailable)
	// ErrFull means that the disk of the database is full. It wraps ErrUnavailable.
	ErrFull = fmt.Errorf("%w: no space left", ErrUnavailable)
	// ErrNoConnection means that no server was reached or accepted the login. It wraps ErrUnavailable.
	ErrNoConnection = fmt.Errorf("%w: no connection", ErrUnavailable)
	// ErrUnsafe means that the settings of the server could lose acknowledged commits. It wraps ErrUnavailable.
	ErrUnsafe = fmt.Errorf("%w: unsafe server", ErrUnavailable)
	// ErrOutcomeUnknown means that a commit was sent but its result is not known.
	ErrOutcomeUnknown = errors.New("outcome of the commit is unknown")
	// ErrRetry means that data the statements read has since changed. They are run again.
	ErrRetry = errors.New("another transaction changed the data")
	// ErrRefused means that the database cannot store a value, whatever it already holds. Nothing was stored.
	ErrRefused = errors.New("the database refuses a value")
	// ErrNoDatabase means that there is no providerd database at the given path or URL.
	ErrNoDatabase = errors.New("no providerd database")
	// ErrForeign means that the database belongs to another program.
	ErrForeign = errors.New("not a providerd database")
	// ErrInsecureMode means that users other than its owner can write to the database.
	ErrInsecureMode = errors.New("database is writable by others")
	// ErrInUse means that a program has the database open, or left files of it behind.
	ErrInUse = errors.New("database is in use")
	// ErrOlder means that the database must be migrated before this version of providerd can use it.
	ErrOlder = errors.New("database is from an older version of providerd")
	// ErrNewer means that the database was written by a later version of providerd.
	ErrNewer = errors.New("database is from a newer version of providerd")
	// ErrCopyIncomplete means that a copy into this database was interrupted.
	ErrCopyIncomplete = errors.New("a copy into this database is unfinished")
)

// Readable is an open database, or a database file that nobody changes.
type Readable interface {
	// Reader returns a handle for read statements. Each is its own transaction and must be short, because a database may
	// have to keep every version that a reader can see.
	Reader() *gorm.DB
}

// Database is an open database with this program's schema. It is safe for concurrent use.
//
// Errors of its GORM handles wrap ErrUnavailable if the database could not be used or ErrRefused, or are
// gorm.ErrRecordNotFound or gorm.ErrDuplicatedKey. Any other error is a bug in this program.
type Database interface {
	Readable
	// IsShared reports whether replicas of this program use the database concurrently, which also makes concurrent
	// batches worthwhile.
	IsShared() bool
	// Change runs statements in one transaction. If it returns nil, they are on disk; if it returns any error except
	// ErrOutcomeUnknown, none of them is. The statements may be rolled back and run again. Changes are serialized across
	// processes: none sees half of another.
	//
	// It returns the error of the statements, ErrUnavailable or ErrOutcomeUnknown.
	Change(ctx context.Context, statements func(tx *gorm.DB) error) error
	// ChangeAlone is Change, but first waits for all transactions that have read the version of the keyset, and blocks
	// others from reading it until it returns. It returns ErrLocked if it has to wait for long.
	ChangeAlone(ctx context.Context, statements func(tx *gorm.DB) error) error
	// Instance identifies the server that runs a transaction. Another one, which takes over, may lack what was committed.
	Instance(tx *gorm.DB) (string, error)
	// Batches opens the connection that batches of creates are committed on. It returns ErrUnavailable.
	Batches(ctx context.Context) (Batches, error)
	// LastKey returns the highest key that a table ever generated, or 0. A transaction of Snapshot may see a later one. It
	// returns ErrUnavailable.
	LastKey(reader *gorm.DB, table string) (int64, error)
	// Settle calls read, which may return an error, and waits until every transaction has ended that may have generated a
	// key before, so that it is committed or never will be. confirm returns nil only if all that was read since will
	// survive the loss of the server. Both return ErrUnavailable.
	Settle(ctx context.Context, read func() error) (confirm func(context.Context) error, err error)
	// Check returns ErrUnavailable if creates cannot be stored now. After a failed create, it tests this by writing.
	Check(ctx context.Context) error
	// Stats returns statistics for monitoring.
	Stats() Stats
	// Close releases the database. The Batches must be closed before. It returns ErrUnavailable if it leaves the files as
	// they are for an operator to repair.
	Close() error
}

// Batches commits batches of creates on its own connection. It is not safe for concurrent use.
type Batches interface {
	// Commit is Change for the statements of a batch, which will reserve at least this many pks. It returns a panic in the
	// statements as an error, so that one caller's panic does not crash the callers of the whole batch.
	Commit(ctx context.Context, pks int, statements func(Batch) error) error
	// Maintain does what the database needs between batches, such as a checkpoint. It is called after each batch, and
	// every few seconds while idle.
	Maintain(ctx context.Context)
	// Close waits for work started by Maintain and releases the connection.
	Close() error
}

// Batch is the transaction of a batch. It writes nothing before Insert is called, and is invalid after the transaction.
type Batch interface {
	// DB returns a handle for statements in the transaction.
	DB() *gorm.DB
	// KeysetVersion returns the version of the keyset when the transaction began.
	KeysetVersion() []byte
	// ReservePKs returns count provider pks, ascending, that no one else gets, or fewer if the largest int32 is reached.
	ReservePKs(count int) ([]int32, error)
	// LastPK returns the last pk that was reserved, or at most 1 if none was. From the largest int32 on, no pk is left.
	LastPK() (int64, error)
	// CanStore returns ErrUnavailable if the last batch that wrote rows failed and rows still cannot be stored. The
	// transaction can continue to read.
	CanStore() error
	// Insert writes lists of rows, each a []*Row of a GORM model, in order. It skips rows with a unique value that is
	// taken, and returns the number of rows skipped in each list, or ErrRetry if a written row refers to a skipped one.
	Insert(lists ...any) (skipped []int, err error)
}
