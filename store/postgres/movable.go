package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

var _ database.Movable = (*Database)(nil)

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

// InsertAll inserts rows by COPY (PostgreSQL documentation, section 14.4.2).
func (d *Database) InsertAll(tx *gorm.DB, table string, columns []string, rows [][]any) error {
	err := raw(tx.Statement.ConnPool.(*sql.Conn), func(conn *pgx.Conn) error {
		_, err := conn.CopyFrom(tx.Statement.Context, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows))
		return err //nolint:wrapcheck // It is wrapped below.
	})
	if err != nil {
		return fmt.Errorf("insert into %s: %w", table, classify(err))
	}
	return nil
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
