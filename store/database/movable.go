package database

import (
	"context"

	"gorm.io/gorm"
)

// Movable is a Database whose contents can be copied to another.
type Movable interface {
	Database
	// Snapshot runs read statements in one transaction, which sees one state of the database for as long as it lasts and
	// does not block writers. It returns the error of the statements or ErrUnavailable.
	Snapshot(ctx context.Context, statements func(tx *gorm.DB) error) error
	// InsertAll adds rows to a table in a transaction of Write. The values are in the order of the columns: int64, bool,
	// string (also for UUIDs and JSON), []byte, time.Time in UTC, or nil.
	InsertAll(tx *gorm.DB, table string, columns []string, rows [][]any) error
	// SetLastKey makes a table generate only keys above last, which is at least 1, in a transaction of Write.
	SetLastKey(tx *gorm.DB, table string, last int64) error
}
