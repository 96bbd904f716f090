package database

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Time is a time in UTC in whole microseconds. It is an integer of microseconds since 1970 in SQLite, and a timestamptz
// in PostgreSQL.
type Time struct{ time.Time }

// TimeOf returns a time in UTC in whole microseconds.
func TimeOf(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

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
