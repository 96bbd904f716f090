package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"

	"example.com/providerd/store/database"
)

// inspect checks, before anything is changed, that the file is empty or a database of providerd, and that a WAL which
// other programs have open or a crash left behind belongs to it. The caller must close what is returned after opening
// another connection: when the last one closes, SQLite copies the WAL into the database. If the WAL belongs to another
// database, the connection is therefore never closed and lasts as long as the process.
func (d *Database) inspect(ctx context.Context) (io.Closer, error) {
	if _, err := checkUse(ctx, d.file); err != nil {
		return nil, err
	}
	wal, err := sizeOf(d.file.Name() + "-wal")
	if err != nil {
		return nil, err
	}
	isBlank, err := isBlank(d.file.File)
	if errors.Is(err, database.ErrCorrupt) && wal > 0 {
		return nil, d.file.changedError()
	}
	if err != nil {
		return nil, err
	}
	d.isNew = isBlank && wal <= 0
	// Its DSN has no settings that make SQLite read the schema, which mismatched files may lack.
	probe, err := sql.Open("sqlite3", fmt.Sprintf("file:%s?mode=rw&_busy_timeout=%d",
		(&url.URL{Path: d.file.Name()}).EscapedPath(), busyTimeout.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("inspect the database: %w", err)
	}
	if wal <= 0 {
		return probe, nil
	}
	probe.SetMaxOpenConns(1)
	err = d.file.checkGeneration(func() (uint32, error) { return readGeneration(ctx, probe) })
	if errors.Is(err, database.ErrCorrupt) {
		err = d.file.changedError()
	}
	return probe, err
}
