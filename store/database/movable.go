package database

import (
	"context"

	"gorm.io/gorm"
)

// Movable is a Database of which everything can be copied to another.
type Movable interface {
	Database
	// Snapshot runs statements that read in one transaction, which sees one state of the database however long it lasts,
	// while others go on to change it. It returns their error or ErrUnavailable.
	Snapshot(ctx context.Context, statements func(tx *gorm.DB) error) error
	// Insert adds rows to a table, in a transaction of Change. The values are in the order of the columns: int64, bool,
	// string, []byte, time.Time in UTC, or nil. UUIDs and JSON are strings.
	Insert(tx *gorm.DB, table string, columns []string, rows [][]any) error
	// LastKey returns the highest key that a table ever gave to a row, or 0, in a transaction of Snapshot.
	LastKey(tx *gorm.DB, table string) (int64, error)
	// SetLastKey makes a table give only keys behind this one, which is at least 1, in a transaction of Change.
	SetLastKey(tx *gorm.DB, table string, last int64) error
}
