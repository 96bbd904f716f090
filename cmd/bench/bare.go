package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

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

// bareCommit returns how long SQLite takes for one durable commit of the rows of an OAuth2 provider in providerd's
// schema, with prepared statements and constant values.
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

// bareDatabase is a database of providerd that is written without it. All its OAuth2 providers equal the first, except
// for pk and client_id. Their secrets cannot be decrypted, because encryption depends on the pk.
type bareDatabase struct {
	db      *sql.DB
	inserts []bareInsert
	lastPK  int
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
	for _, table := range []string{"providers", "oauth2_providers"} {
		insert, err := newBareInsert(ctx, db, table)
		if err != nil {
			return nil, errors.Join(err, db.Close())
		}
		bare.inserts = append(bare.inserts, insert)
	}
	return bare, nil
}

// commit inserts providers in one transaction.
func (b *bareDatabase) commit(ctx context.Context, count int) (err error) {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin bare transaction: %w", err)
	}
	for range count {
		b.lastPK++
		for _, insert := range b.inserts {
			if err := insert.execute(ctx, tx, b.lastPK); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit bare rows: %w", err)
	}
	return nil
}

// bareInsert inserts copies of the row in a table.
type bareInsert struct {
	statement    *sql.Stmt
	values       []any
	pk, clientID int // Indexes into values.
}

func newBareInsert(ctx context.Context, db *sql.DB, table string) (bareInsert, error) {
	rows, err := db.QueryContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		return bareInsert{}, fmt.Errorf("read %s: %w", table, err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return bareInsert{}, fmt.Errorf("read columns of %s: %w", table, err)
	}
	insert := bareInsert{
		values: make([]any, len(columns)),
		pk:     slices.Index(columns, "pk"), clientID: slices.Index(columns, "client_id"),
	}
	places := make([]any, len(columns))
	for i := range places {
		places[i] = &insert.values[i]
	}
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return bareInsert{}, fmt.Errorf("read the row of %s: %w", table, err)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return bareInsert{}, fmt.Errorf("read %s: %w", table, err)
	}
	marks := strings.TrimSuffix(strings.Repeat("?,", len(columns)), ",")
	insert.statement, err = db.PrepareContext(ctx, "INSERT INTO "+table+" VALUES ("+marks+")")
	if err != nil {
		return bareInsert{}, fmt.Errorf("prepare: %w", err)
	}
	return insert, nil
}

func (i bareInsert) execute(ctx context.Context, tx *sql.Tx, pk int) error {
	i.values[i.pk] = pk
	if i.clientID >= 0 {
		i.values[i.clientID] = store.RandomAlphanumeric(40)
	}
	statement := tx.StmtContext(ctx, i.statement)
	defer func() { _ = statement.Close() }()
	if _, err := statement.ExecContext(ctx, i.values...); err != nil {
		return fmt.Errorf("insert bare row: %w", err)
	}
	return nil
}
