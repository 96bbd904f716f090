package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// snapshotStatement turns timeouts off for a snapshot.
const snapshotStatement = `SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0`

// Snapshot runs statements in a read-only transaction. Until it ends, the server cannot vacuum rows that are visible
// to it.
func (d *Database) Snapshot(ctx context.Context, statements func(tx *gorm.DB) error) error {
	tx := d.readers.GORM.WithContext(ctx).Begin(&sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if tx.Error != nil {
		return fmt.Errorf("begin: %w", unavailable(tx.Error))
	}
	defer func() { _ = tx.Rollback() }()
	if err := tx.Exec(snapshotStatement).Error; err != nil {
		return fmt.Errorf("begin: %w", unavailable(err))
	}
	return classify(statements(tx))
}

// loadTimeout limits the statements of Load, and loadCommitTimeout its commit.
const (
	loadTimeout       = 24 * time.Hour
	loadCommitTimeout = time.Minute
)

// Load runs statements in one transaction, without waiting for other changes.
func (d *Database) Load(ctx context.Context, statements func(tx *gorm.DB) error) error {
	_, err := d.try(ctx, terms{beginStatement, loadTimeout, loadCommitTimeout}, statements)
	return err
}

// sequenceOfKey selects the sequence of a table's primary key, which is its first column.
const sequenceOfKey = `(SELECT pg_get_serial_sequence(@table, attname) FROM pg_attribute
	WHERE attrelid = to_regclass(@table) AND attnum = 1)`

// SetLastKey sets the key's sequence, which is not undone if the transaction is rolled back.
func (d *Database) SetLastKey(tx *gorm.DB, table string, last int64) error {
	err := tx.Exec("SELECT setval("+sequenceOfKey+", @last)", sql.Named("table", table), sql.Named("last", last)).Error
	if err != nil {
		return fmt.Errorf("set the last key of %s: %w", table, err)
	}
	return nil
}
