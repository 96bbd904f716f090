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

// inspect checks, before anything is changed, that the file is empty or a database of providerd, and that a WAL which
// other programs have open or a crash left behind belongs to it. The caller must close the returned connection after
// opening another one: when the last connection closes, SQLite copies the WAL into the database. If the WAL belongs to
// another database, the connection is therefore never closed and lasts as long as the process.
func (d *Database) inspect(ctx context.Context) (io.Closer, error) {
	if err := guard.CheckShared(ctx, d.file); err != nil {
		return nil, err
	}
	// Its DSN has no settings that make SQLite read the schema, which mismatched files may lack, or change a file of
	// another program.
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

// checkForeign returns ErrForeign for a database of another program. A database without an application_id and without
// tables is new.
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
