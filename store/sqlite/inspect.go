package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite/guard"
)

// inspect checks, before anything is changed, that the file is empty or a database of providerd, and that a WAL which
// other programs have open or a crash left behind belongs to it. The caller must close what is returned after opening
// another connection: when the last one closes, SQLite copies the WAL into the database. If the WAL belongs to another
// database, the connection is therefore never closed and lasts as long as the process.
func (d *Database) inspect(ctx context.Context) (io.Closer, error) {
	if _, err := guard.CheckUse(ctx, d.file); err != nil {
		return nil, err
	}
	wal, err := sizeOf(d.file.Name() + "-wal")
	if err != nil {
		return nil, err
	}
	isBlank, err := isBlank(d.file.File)
	if errors.Is(err, database.ErrCorrupt) && wal > 0 {
		return nil, guard.Changed(d.file.Name())
	}
	if err != nil {
		return nil, err
	}
	d.isNew = isBlank && wal <= 0
	if wal <= 0 {
		return io.NopCloser(nil), nil
	}
	// Its DSN has no settings that make SQLite read the schema, which mismatched files may lack.
	probe, err := openDSN(d.file.Name(), fmt.Sprintf("mode=rw&_busy_timeout=%d", busyTimeout.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("inspect the database: %w", err)
	}
	probe.SetMaxOpenConns(1)
	err = d.file.CheckGeneration(func() (uint32, error) { return readGeneration(ctx, probe) })
	if errors.Is(err, database.ErrCorrupt) {
		err = guard.Changed(d.file.Name())
	}
	return probe, err
}
