//nolint:wrapcheck // GORM's and the driver's own errors are wrapped by Backup.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"

	"example.com/providerd/store/files"
	"example.com/providerd/store/sqlite/connection"
)

// Progress is called with the number of bytes copied so far and in total.
type Progress func(done, total int64)

const (
	// pagesPerStep is 4 MiB of pages. Between steps, a backup checks its context.
	pagesPerStep = 1 << 10
	// stepsPerSync is 32 MiB. With more unsynced data, the commits of others would wait long for the disk.
	stepsPerSync = 8
)

// Backup writes a snapshot of the database to a new file at path, readable by its owner only, while others keep
// writing. The WAL grows, because it cannot be reset until the last page is copied. Before the file is linked to its
// name, it is synced and verified: it must pass SQLite's integrity_check, have as many rows in each table as the
// snapshot, and pass check. If anything fails, the file is removed. It belongs to the user that runs the program, not
// to the owner of the directory, because no server reads it. A killed backup leaves at most a file with a hidden name.
//
// It returns ErrReservedName, fs.ErrExist if path exists, ErrFull, the error of check or ctx, or a file system error.
func (d *Database) Backup(ctx context.Context, path string, progress Progress, check Check) (err error) {
	if err := CheckName(path); err != nil {
		return err
	}
	draft, err := files.CreateDraft(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, draft.Cleanup()) }()
	rows, err := d.copyTo(ctx, draft, progress)
	if err != nil {
		return fmt.Errorf("back up to %s: %w", path, connection.Classify(err))
	}
	if err := draft.Sync(); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	if err := verify(ctx, draft.Name(), path, rows, check); err != nil {
		return err
	}
	return draft.Publish()
}

// copyTo copies all pages in one read transaction, and returns the number of rows in each table.
func (d *Database) copyTo(
	ctx context.Context, draft *files.Draft, progress Progress,
) (rows map[string]int64, err error) {
	if err := d.files.Check(); err != nil {
		return nil, err
	}
	pages := pageCopy{draft: draft, progress: progress}
	if pages.from, err = d.readers.Conn(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pages.from.Close()) }()
	// The connection must return to the pool without a transaction.
	defer func() { _, _ = pages.from.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }()
	if _, err := pages.from.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	// The first read determines the snapshot.
	reader := d.readers.GORM.WithContext(ctx)
	reader.Statement.ConnPool = pages.from
	if rows, err = countRows(reader); err != nil {
		return nil, err
	}
	if err := pages.copy(ctx); err != nil {
		return nil, err
	}
	return rows, d.files.Check()
}

// pageCopy copies the pages of a snapshot.
type pageCopy struct {
	from     *sql.Conn
	draft    *files.Draft
	progress Progress
	pageSize int64
}

// copy writes without a journal or locks: no other program knows the file, and it is removed on failure.
func (p *pageCopy) copy(ctx context.Context) (err error) {
	if err := p.from.QueryRowContext(ctx, "PRAGMA page_size").Scan(&p.pageSize); err != nil {
		return err
	}
	pool, err := connection.OpenDSN(p.draft.Name(), "mode=rw&nolock=1&_journal_mode=OFF&_synchronous=OFF&_mutex=no")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	to, err := pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return to.Raw(func(to any) error {
		return p.from.Raw(func(from any) error { return p.steps(ctx, to, from) })
	})
}

// steps copies some pages at a time with the backup API of the driver's connections.
func (p *pageCopy) steps(ctx context.Context, to, from any) (err error) {
	backup, err := to.(*sqlite3.SQLiteConn).Backup("main", from.(*sqlite3.SQLiteConn), "main")
	if err != nil {
		return err
	}
	defer func() {
		// Finish repeats the error of the last step.
		if finishErr := backup.Finish(); err == nil {
			err = finishErr
		}
	}()
	for number := 1; ; number++ {
		isDone, err := backup.Step(pagesPerStep)
		if err != nil {
			return err
		}
		total, left := int64(backup.PageCount())*p.pageSize, int64(backup.Remaining())*p.pageSize
		p.progress(total-left, total)
		if isDone {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if number%stepsPerSync == 0 {
			err = p.draft.Sync()
		}
		if err != nil {
			return err
		}
	}
}
