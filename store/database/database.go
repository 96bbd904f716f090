// Package database is the seam between the store and the databases that can keep it: the interfaces that each of them
// implements, their errors, and what they share about pools and schemas. It has no statement about a provider, no
// driver and no dialect. Each database has a package of its own, which opens it, brings its schema to the version of
// this program, and returns a Database.
//
// Start with Database in database.go; Batches and Batch, behind it, are the way of a create.
package database

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
)

var (
	// ErrUnavailable says that the database cannot be used at the moment: it is away, locked, damaged or out of space.
	// Nothing was stored.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrCorrupt says that the file of a database is none, or a damaged one. It is an ErrUnavailable.
	ErrCorrupt = fmt.Errorf("%w: no database, or a damaged one", ErrUnavailable)
	// ErrFull says that the disk of the database has no room. It is an ErrUnavailable.
	ErrFull = fmt.Errorf("%w: no room", ErrUnavailable)
	// ErrNoConnection says that no server was reached, or that none let the program in. It is an ErrUnavailable.
	ErrNoConnection = fmt.Errorf("%w: no connection", ErrUnavailable)
	// ErrUnsafe says that the database is set up so that it could lose what it acknowledges. It is an ErrUnavailable.
	ErrUnsafe = fmt.Errorf("%w: the server is not safe", ErrUnavailable)
	// ErrOutcomeUnknown says that the database did not tell whether a commit took place.
	ErrOutcomeUnknown = errors.New("outcome of the commit is unknown")
	// ErrRetry says that what statements looked up is no longer so. They are run again.
	ErrRetry = errors.New("overtaken by another transaction")
	// ErrNoDatabase says that there is no providerd database at the place that was named.
	ErrNoDatabase = errors.New("no providerd database")
	// ErrForeign says that there is a database, but one of another program.
	ErrForeign = errors.New("not a database of providerd")
	// ErrInsecureMode says that others than its owner can write to the database.
	ErrInsecureMode = errors.New("database is exposed")
	// ErrInUse says that a program has the database open, or has left what belongs to it.
	ErrInUse = errors.New("database is in use")
	// ErrOlder says that the database must be migrated before this version of providerd can use it.
	ErrOlder = errors.New("database is from an older version of providerd")
	// ErrNewer says that the database was written by a later version of providerd.
	ErrNewer = errors.New("database is from a newer version of providerd")
	// ErrCopyIncomplete says that another database was being copied into this one, and that not all of it is there.
	ErrCopyIncomplete = errors.New("a copy into the database was not finished")
)

// Readable is what can be read: an open database, or a file with one that nobody changes.
type Readable interface {
	// Reader returns a handle for statements that read. Each is a transaction of its own, and is to be short: a database
	// may keep what a reader still sees.
	Reader() *gorm.DB
}

// Database is one open database of this program's schema. It is safe for concurrent use.
//
// The errors of its GORM handles wrap ErrUnavailable where the database could not be used, and are
// gorm.ErrRecordNotFound and gorm.ErrDuplicatedKey where they fit. Any other error says that this program is wrong.
type Database interface {
	Readable
	// IsShared tells whether other replicas of this program use the database at the same time, and so whether several
	// batches at a time are of use.
	IsShared() bool
	// Change runs statements in one transaction. When it returns nil, they are on disk; otherwise none of them is, but
	// where the error is ErrOutcomeUnknown. The statements may be run again, after all they did was rolled back. Changes
	// take turns, in whatever process: none sees half of another.
	//
	// It returns their error, ErrUnavailable or ErrOutcomeUnknown.
	Change(ctx context.Context, statements func(tx *gorm.DB) error) error
	// ChangeAlone is Change that first waits for the batches that have written rows, and lets none write any meanwhile.
	ChangeAlone(ctx context.Context, statements func(tx *gorm.DB) error) error
	// Batches connects the one who commits batches of creates. It returns ErrUnavailable.
	Batches(ctx context.Context) (Batches, error)
	// Check tells whether creates can be stored now, and tries to where the last one failed. It returns ErrUnavailable.
	Check(ctx context.Context) error
	// Stats returns figures for whoever watches the database.
	Stats() Stats
	// Close releases the database, after the Batches were closed. It returns ErrUnavailable where it leaves the database
	// as it is, so that an operator can put it right.
	Close() error
}

// Batches commits batches of creates over a connection of its own. It is for one goroutine at a time.
type Batches interface {
	// Commit is Change for the statements of a batch, which are going to reserve so many pks, or some more. A panic in the
	// statements is such an error, because the callers of a batch are not to fall with each other.
	Commit(ctx context.Context, pks int, statements func(Batch) error) error
	// Maintain does what the database needs between batches. It is called after each and every few seconds while none
	// comes.
	Maintain(ctx context.Context)
	// Close waits for what Maintain has begun, and gives the connection back.
	Close() error
}

// Batch is the transaction of a batch, which writes nothing before it calls Insert. It is of no use after the
// transaction.
type Batch interface {
	// DB returns a handle for statements in the transaction.
	DB() *gorm.DB
	// ReservePKs returns pks of providers, ascending, that nobody else gets: as many as asked for, or those that are left
	// up to the largest int32.
	ReservePKs(count int) ([]int32, error)
	// LastPK returns the pk that was given last. From the largest int32 on, none is left. It is at most 1 where none was
	// given.
	LastPK() (int64, error)
	// CanStore returns ErrUnavailable if the last batch that wrote rows failed and rows still cannot be stored. The
	// transaction can continue: whatever only reads is not affected.
	CanStore() error
	// Insert writes lists of rows, each a []*Row of a GORM model, one after the other, but for rows of which a unique
	// value is taken. It returns how many of each list are left out, or ErrRetry where a row that is not refers to
	// one that is.
	Insert(lists ...any) (left []int, err error)
}
