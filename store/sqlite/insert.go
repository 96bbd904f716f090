package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"strings"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite/connection"
	"example.com/providerd/store/sqlite/guard"
)

// idleInterval is how often a database without creates is maintained.
const idleInterval = 5 * time.Second

// inserter inserts rows on a connection of its own, with checkpoints in between, in one goroutine at a time.
type inserter struct {
	database    *Database
	statements  connection.Statements
	checkpoints *checkpointer
	// texts are the INSERTs by number of rows. There are few: see run.
	texts map[int]string
	// values has room for those of an INSERT.
	values []driver.NamedValue
	stop   chan struct{}
	ended  chan struct{}
}

// Insert inserts rows in one durable transaction, and checks the files before, in and after it. It waits for the busy
// timeout at most, but ignores the context: with one that can end, the driver starts a goroutine for each statement.
func (d *Database) Insert(ctx context.Context, rows database.Insertion) (pks map[uuid.UUID]int64, err error) {
	ctx = context.WithoutCancel(ctx)
	d.inserting.Lock()
	defer d.inserting.Unlock()
	if d.inserter == nil {
		if err := d.files.Check(); err != nil {
			return nil, err
		}
		if d.inserter, err = newInserter(ctx, d); err != nil {
			return nil, err
		}
	}
	pks, err = d.inserter.insert(ctx, rows)
	switch {
	case errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrOutcomeUnknown):
		d.failed.Store(true)
	case len(pks) > 0:
		// A transaction without rows also commits on a full disk.
		d.failed.Store(false)
	}
	if err != nil {
		d.inserter.maintain(ctx)
	}
	return pks, err
}

func newInserter(ctx context.Context, d *Database) (*inserter, error) {
	conn, err := d.writers.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", connection.Classify(err))
	}
	i := &inserter{
		database: d, statements: connection.Statements{Conn: conn}, texts: map[int]string{},
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	// Checkpoints are left to the checkpointer. Providers have no foreign keys. The journal of a statement is in memory,
	// because one that may skip rows has a journal.
	_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = %d; "+
		"PRAGMA foreign_keys = off; PRAGMA temp_store = memory; PRAGMA busy_timeout = %d", walSizeLimit,
		busyRound.Milliseconds()))
	if err == nil {
		i.checkpoints, err = newCheckpointer(ctx, conn, d)
	}
	if err != nil {
		// The pool must not use its settings for other transactions.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		return nil, errors.Join(fmt.Errorf("connect: %w", connection.Classify(err)), conn.Close())
	}
	go i.idle() //nolint:gosec // It outlives the insert.
	return i, nil
}

// insert runs the INSERT in a transaction.
func (i *inserter) insert(ctx context.Context, rows database.Insertion) (pks map[uuid.UUID]int64, err error) {
	index, err := i.database.files.Commit(guard.Transaction{
		Begin: func() error { return connection.Classify(i.begin(ctx)) },
		Run: func(resets bool) (err error) {
			if resets {
				if err := connection.IncrementGeneration(ctx, i.statements.Conn); err != nil {
					return err
				}
			}
			pks, err = i.run(ctx, rows)
			return err
		},
		Commit: func() error { return connection.CommitError(i.statements.Exec(ctx, "COMMIT")) },
	})
	if err != nil {
		// SQLite may have rolled it back already, or committed it.
		_ = i.statements.Exec(ctx, "ROLLBACK")
		return nil, err
	}
	i.checkpoints.committed(ctx, index)
	return pks, nil
}

// begin begins a transaction with the lock of the database.
func (i *inserter) begin(ctx context.Context) error {
	begun := time.Now()
	err := untilLocked(func() error { return i.statements.Exec(ctx, "BEGIN IMMEDIATE") })
	if i.database.locks.add(time.Since(begun)) {
		i.database.logger.Warn("creates wait most of the time, because another program holds the lock of the database; "+
			"find it with fuser, and let it write less", slog.String("path", i.database.file.Name()))
	}
	return err
}

const selectBeforeInsert = `SELECT version, (` + selectLastPK + `), (` + selectLastEvent + `) FROM keyset`

// run executes INSERTs of powers of two of rows, so that there are few different statements.
func (i *inserter) run(ctx context.Context, rows database.Insertion) (pks map[uuid.UUID]int64, err error) {
	var version []byte
	var lastPK, lastEvent int64
	err = i.statements.Query(ctx, selectBeforeInsert, func(row []driver.Value) error {
		version, _ = row[0].([]byte)
		lastPK, _ = row[1].(int64)
		lastEvent, _ = row[2].(int64)
		return nil
	})
	if err != nil || !bytes.Equal(version, rows.KeysetVersion) {
		return nil, connection.Classify(err)
	}
	if max(lastPK, lastEvent) > maxKey-int64(len(rows.Rows)) {
		return nil, endedError("providers or events")
	}
	pks = make(map[uuid.UUID]int64, len(rows.Rows))
	for rest := rows.Rows; len(rest) > 0; {
		count := 1 << (bits.Len(uint(len(rest))) - 1)
		if err := i.insertRows(ctx, rows, rest[:count], lastPK, pks); err != nil {
			return nil, fmt.Errorf("insert: %w", err)
		}
		rest, lastPK = rest[count:], lastPK+int64(count)
	}
	return pks, nil
}

// insertRows inserts rows with one statement, with pks after the last one, and adds their pks.
func (i *inserter) insertRows(
	ctx context.Context, all database.Insertion, rows [][]any, lastPK int64, pks map[uuid.UUID]int64,
) error {
	text, ok := i.texts[len(rows)]
	if !ok {
		text = insertText(all, len(rows))
		i.texts[len(rows)] = text
	}
	values := append(i.values[:0], driver.NamedValue{Ordinal: 1, Value: lastPK})
	for _, row := range rows {
		for _, value := range row {
			values = append(values, driver.NamedValue{Ordinal: len(values) + 1, Value: native(value)})
		}
	}
	err := i.statements.Query(ctx, text, func(row []driver.Value) error {
		text, _ := row[0].(string)
		uid, err := uuid.Parse(text)
		if err != nil {
			return fmt.Errorf("read the pks: %w", err)
		}
		pks[uid], _ = row[1].(int64)
		return nil
	}, values...)
	clear(values)
	i.values = values
	return connection.InsertError(err)
}

// native returns a value in the form of a column.
func native(value any) any {
	switch value := value.(type) {
	case time.Time:
		return value.UnixMicro()
	case uuid.UUID:
		return value.String()
	default:
		return value
	}
}

// insertText returns the INSERT for a number of rows, whose pks follow ?1. It skips rows whose unique values are taken.
func insertText(rows database.Insertion, count int) string {
	var values strings.Builder
	for n := range count {
		fmt.Fprintf(&values, ",(?1+%d%s)", n+1, strings.Repeat(",?", len(rows.Columns)))
	}
	return "INSERT INTO " + rows.Table + " (pk, " + strings.Join(rows.Columns, ", ") + ") VALUES " + values.String()[1:] +
		" ON CONFLICT DO NOTHING RETURNING uid, pk"
}

// idle maintains the database while no creates arrive.
func (i *inserter) idle() {
	defer close(i.ended)
	ticker := time.NewTicker(idleInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if i.database.inserting.TryLock() {
				i.maintain(context.Background())
				i.database.inserting.Unlock()
			}
		case <-i.stop:
			return
		}
	}
}

// maintain runs the checkpoint that is due, if any, when nothing was inserted.
func (i *inserter) maintain(ctx context.Context) {
	index, err := i.database.files.Inspect()
	switch {
	case err != nil:
	case i.database.failed.Load():
		i.checkpoints.makeRoom(ctx, index)
	default:
		i.checkpoints.idle(ctx, index)
	}
}

// close waits for a running checkpoint and closes the connections.
func (i *inserter) close() error {
	close(i.stop)
	<-i.ended
	return errors.Join(i.checkpoints.close(), i.statements.Close())
}

// Snapshot runs statements in a read transaction, during which the WAL cannot be reset and grows.
func (d *Database) Snapshot(ctx context.Context, statements func(tx *gorm.DB) error) error {
	if err := d.files.Check(); err != nil {
		return err
	}
	tx := d.Reader().WithContext(ctx).Begin()
	if tx.Error != nil {
		return fmt.Errorf("begin: %w", tx.Error)
	}
	defer func() { _ = tx.Rollback() }()
	if err := statements(tx); err != nil {
		return err
	}
	return d.files.Check()
}

// loadCache is the page cache of a connection that loads, in KiB. Pages of indexes that do not fit are written often.
const loadCache = 128 << 10

// Load is Write with a large cache.
func (d *Database) Load(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return d.Write(ctx, func(tx *gorm.DB) error {
		if err := tx.Exec(fmt.Sprintf("PRAGMA cache_size = -%d", loadCache)).Error; err != nil {
			return fmt.Errorf("set cache_size: %w", err)
		}
		if err := statements(tx); err != nil {
			return err
		}
		return check(tx)
	})
}
