package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	_ "github.com/mattn/go-sqlite3" // The driver for bare commits.

	"example.com/providerd/store"
)

// commitsTimed is how many commits a round measures.
const commitsTimed = 2000

// bareCommits returns the median of bareCommit over the rounds, after syncing the writes of earlier measurements.
func bareCommits(ctx context.Context, rounds int) (time.Duration, error) {
	syscall.Sync()
	var seconds []float64
	for range rounds {
		each, err := bareCommit(ctx)
		if err != nil {
			return 0, err
		}
		seconds = append(seconds, each.Seconds())
	}
	return time.Duration(median(seconds) * float64(time.Second)), nil
}

// bareCommit returns how long SQLite takes for one durable commit of the row of an OAuth2 provider in providerd's
// schema, with a prepared statement and constant values.
func bareCommit(ctx context.Context) (each time.Duration, err error) {
	dir, err := makeDir()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bare, err := openBare(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, bare.db.Close()) }()
	started := time.Now()
	for range commitsTimed {
		if err := bare.commit(ctx, 1); err != nil {
			return 0, err
		}
	}
	return time.Since(started) / commitsTimed, nil
}

// bareDatabase is a database of providerd that is written without it. All its providers equal the first, except for what
// is unique. Their secrets cannot be decrypted, because encryption depends on the uid.
type bareDatabase struct {
	db     *sql.DB
	insert *sql.Stmt
	// values are those of the columns after pk and uid, the first of which is client_id.
	values []any
	lastPK int
}

// openBare creates a database with one provider.
func openBare(ctx context.Context, dir string) (*bareDatabase, error) {
	if err := createFirst(ctx, dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, databaseFile)
	db, err := sql.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_synchronous=FULL&_txlock=immediate&_foreign_keys=on")
	if err != nil {
		return nil, fmt.Errorf("open bare database: %w", err)
	}
	db.SetMaxOpenConns(1)
	bare := &bareDatabase{db: db, lastPK: 1}
	if err := bare.prepare(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return bare, nil
}

// prepare reads the first provider and prepares the insert of copies.
func (b *bareDatabase) prepare(ctx context.Context) error {
	const others = "SELECT group_concat(name, ', '), count(*) FROM pragma_table_info('providers') " +
		"WHERE name NOT IN ('pk', 'uid', 'client_id')"
	var columns string
	var count int
	if err := b.db.QueryRowContext(ctx, others).Scan(&columns, &count); err != nil {
		return fmt.Errorf("read columns: %w", err)
	}
	columns = "client_id, " + columns
	b.values = make([]any, 1+count)
	places := make([]any, len(b.values))
	for i := range places {
		places[i] = &b.values[i]
	}
	if err := b.db.QueryRowContext(ctx, "SELECT "+columns+" FROM providers").Scan(places...); err != nil {
		return fmt.Errorf("read the first provider: %w", err)
	}
	marks := strings.Repeat(", ?", len(b.values))
	insert, err := b.db.PrepareContext(ctx, "INSERT INTO providers (pk, uid, "+columns+") VALUES (?, ?"+marks+")")
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	b.insert = insert
	return nil
}

// commit inserts providers in one transaction.
func (b *bareDatabase) commit(ctx context.Context, count int) (err error) {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin bare transaction: %w", err)
	}
	insert := tx.StmtContext(ctx, b.insert)
	defer func() { _ = insert.Close() }()
	for range count {
		b.lastPK++
		b.values[0] = store.RandomAlphanumeric(40)
		uid, err := uuid.NewV7()
		if err == nil {
			_, err = insert.ExecContext(ctx, append([]any{b.lastPK, uid.String()}, b.values...)...)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("insert bare row: %w", err), tx.Rollback())
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit bare rows: %w", err)
	}
	return nil
}
