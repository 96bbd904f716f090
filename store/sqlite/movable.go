package sqlite

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

var _ database.Movable = (*Database)(nil)

// Snapshot runs statements in a read transaction on a read-only connection. While they run, the WAL
// grows, because it cannot be reset.
func (d *Database) Snapshot(ctx context.Context, statements func(tx *gorm.DB) error) error {
	if err := d.files.Check(); err != nil {
		return err
	}
	tx := d.readers.GORM.WithContext(ctx).Begin()
	if tx.Error != nil {
		return fmt.Errorf("begin: %w", tx.Error)
	}
	defer func() { _ = tx.Rollback() }()
	if err := statements(tx); err != nil {
		return err
	}
	return d.files.Check()
}

// bulkWAL lets the WAL grow to 64 MiB before a checkpoint. Each transaction with bulk rows changes many pages of an
// index; fewer checkpoints copy each page less often.
const bulkWAL = "PRAGMA wal_autocheckpoint = 16384"

// InsertAll inserts rows with one prepared statement.
func (d *Database) InsertAll(tx *gorm.DB, table string, columns []string, rows [][]any) error {
	// With a cancelable context, the driver would start a goroutine for each row.
	ctx := context.WithoutCancel(tx.Statement.Context)
	if err := tx.Exec(bulkWAL).Error; err != nil {
		return fmt.Errorf("set wal_autocheckpoint: %w", err)
	}
	statement, err := tx.Statement.ConnPool.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES (?%s)",
		table, strings.Join(columns, ", "), strings.Repeat(", ?", len(columns)-1)))
	if err != nil {
		return fmt.Errorf("insert into %s: %w", table, classify(err))
	}
	defer func() { _ = statement.Close() }()
	for _, row := range rows {
		values := make([]any, len(row))
		for i, value := range row {
			values[i] = native(value)
		}
		if _, err := statement.ExecContext(ctx, values...); err != nil {
			return fmt.Errorf("insert into %s: %w", table, classify(err))
		}
	}
	return nil
}

// SetLastKey sets the sequence of a table with AUTOINCREMENT. It deletes the old row first, because sqlite_sequence has
// no UNIQUE constraint to upsert on.
func (d *Database) SetLastKey(tx *gorm.DB, table string, last int64) error {
	err := tx.Exec("DELETE FROM sqlite_sequence WHERE name = ?", table).Error
	if err == nil {
		err = tx.Exec("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", table, last).Error
	}
	if err != nil {
		return fmt.Errorf("set the last key of %s: %w", table, err)
	}
	return nil
}
