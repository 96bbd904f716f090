package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/mattn/go-sqlite3"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite/guard"
)

// inspect makes sure, before anything is changed, that a file is a database of providerd or new, and that the WAL which
// other programs have open, or which a crash left, belongs to it. It returns a connection that is to be closed once
// there is another: with the last one, SQLite copies the WAL into the database. So it is not closed where the WAL is
// another's, and ends with the process.
func (d *Database) inspect(ctx context.Context) (io.Closer, error) {
	if err := guard.CheckShared(ctx, d.file); err != nil {
		return nil, err
	}
	// It has no settings that make SQLite read the schema, which files that do not belong together may not have, or that
	// change the file of another program.
	probe, err := sql.Open("sqlite3", fmt.Sprintf("file:%s?mode=rw&_busy_timeout=%d",
		(&url.URL{Path: d.file.Name()}).EscapedPath(), busyTimeout.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("inspect the database: %w", err)
	}
	probe.SetMaxOpenConns(1)
	err = d.inspectWith(ctx, probe)
	if err != nil && !errors.Is(err, database.ErrUnavailable) {
		err = errors.Join(err, probe.Close())
	}
	return probe, err
}

func (d *Database) inspectWith(ctx context.Context, probe *sql.DB) error {
	var id int
	err := probe.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id)
	if native, ok := errors.AsType[sqlite3.Error](err); ok && native.Code == sqlite3.ErrCorrupt {
		return d.file.ChangedError()
	}
	if err != nil {
		return fmt.Errorf("read database %s: %w", d.file.Name(), classify(err))
	}
	if id != applicationID {
		return d.checkForeign(ctx, probe, id)
	}
	if wal, err := sizeOf(d.file.Name() + "-wal"); err != nil || wal <= 0 {
		return err
	}
	if err := d.watch(); err != nil {
		return err
	}
	return d.files.CheckGeneration(currentGeneration(ctx, probe))
}

// checkForeign refuses a database of another program: one that is not marked as providerd's, and not empty.
func (d *Database) checkForeign(ctx context.Context, probe *sql.DB, id int) error {
	var tables int
	if err := probe.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return fmt.Errorf("read database %s: %w", d.file.Name(), classify(err))
	}
	if id != 0 || tables > 0 {
		return fmt.Errorf("%w: %s has application_id %d", database.ErrForeign, d.file.Name(), id)
	}
	d.isNew = true
	return nil
}
