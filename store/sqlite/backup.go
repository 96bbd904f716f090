//nolint:wrapcheck // GORM's and the driver's own errors are wrapped by Backup.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"github.com/mattn/go-sqlite3"

	"example.com/providerd/store/database"
	"example.com/providerd/store/durable"
)

// Progress is told how many bytes of all are copied.
type Progress func(done, total int64)

// Check looks at what was copied, before it gets its name. An error keeps it from that.
type Check func(copied database.Readable) error

const (
	// pagesPerStep are 4 MiB, after which a backup looks whether it is to go on.
	pagesPerStep = 1 << 10
	// stepsPerSync are how many steps, 32 MiB, wait for the disk together. With more, the commits of others would wait long
	// for what the disk has to do.
	stepsPerSync = 8
)

// Backup writes the state that the database has now to a new file at path, which only its owner can read, while others
// go on to change it. Until the last page is copied, the WAL is not reset, and grows. Then the file, which is on disk,
// must pass SQLite's integrity_check, have as many rows in each table as that state, and pass check, before it gets its
// name. Otherwise nothing is left of it. It belongs to who makes it, in whosever folder: no server reads it. What
// backups that were killed have left in the folder is removed.
//
// It returns ErrReservedName, fs.ErrExist where something is at path, ErrUnavailable where the disks would not hold the
// file beside what comes to the WAL meanwhile, the error of check or ctx, or one of the file system.
func (d *Database) Backup(ctx context.Context, path string, progress Progress, check Check) (err error) {
	if err := CheckName(path); err != nil {
		return err
	}
	if err := durable.CheckNotExist(path); err != nil {
		return err
	}
	draft, err := durable.CreateDraft(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: directory %s does not exist; create it first", path, filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, draft.Close()) }()
	// A backup that was killed may have had any name, and leaves a draft as large as the database.
	if err := durable.RemoveAbandoned(filepath.Dir(path), func(string) bool { return true }); err != nil {
		return err
	}
	rows, err := d.copyTo(ctx, draft, progress)
	if err != nil {
		return fmt.Errorf("back up to %s: %w", path, classify(err))
	}
	if err := draft.Sync(); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	if err := verify(ctx, draft.Name(), path, rows, check); err != nil {
		return err
	}
	return draft.Publish()
}

// copyTo copies all pages in one transaction, and returns what it sees in the tables.
func (d *Database) copyTo(
	ctx context.Context, draft *durable.Draft, progress Progress,
) (rows map[string]int64, err error) {
	if err := d.files.Check(); err != nil {
		return nil, err
	}
	pages := pageCopy{draft: draft, databaseDir: d.dir, progress: progress}
	if pages.from, err = d.readers.Conn(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pages.from.Close()) }()
	// It goes back to the pool without a transaction.
	defer func() { _, _ = pages.from.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }()
	if _, err := pages.from.ExecContext(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	// What is read first decides which state the transaction sees.
	over := d.readers.GORM.WithContext(ctx)
	over.Statement.ConnPool = pages.from
	if rows, err = countRows(over); err != nil {
		return nil, err
	}
	if err := pages.copy(ctx); err != nil {
		return nil, err
	}
	return rows, d.files.Check()
}

// pageCopy copies the pages that a transaction sees.
type pageCopy struct {
	from        *sql.Conn
	draft       *durable.Draft
	databaseDir string
	progress    Progress
	pageSize    int64
}

// copy writes the pages over a connection that has neither a journal nor a lock: nobody else knows the file, and where
// this fails it is removed.
func (p *pageCopy) copy(ctx context.Context) (err error) {
	var pages int64
	const size = "SELECT page_count, page_size FROM pragma_page_count, pragma_page_size"
	if err := p.from.QueryRowContext(ctx, size).Scan(&pages, &p.pageSize); err != nil {
		return err
	}
	if err := p.checkRoom(pages * p.pageSize); err != nil {
		return err
	}
	pool, err := sql.Open("sqlite3", fmt.Sprintf("file:%s?mode=rw&nolock=1&_journal_mode=OFF&_synchronous=OFF&_mutex=no",
		(&url.URL{Path: p.draft.Name()}).EscapedPath()))
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

func (p *pageCopy) checkRoom(rest int64) error {
	return checkRoom(filepath.Dir(p.draft.Name()), p.databaseDir, rest)
}

// steps copies a few pages at a time, between the driver's own connections.
func (p *pageCopy) steps(ctx context.Context, to, from any) (err error) {
	backup, err := to.(*sqlite3.SQLiteConn).Backup("main", from.(*sqlite3.SQLiteConn), "main")
	if err != nil {
		return err
	}
	defer func() {
		// It tells again what the last step has told.
		if finishErr := backup.Finish(); err == nil {
			err = primaryError(finishErr)
		}
	}()
	for number := 1; ; number++ {
		isDone, err := backup.Step(pagesPerStep)
		if err != nil {
			return primaryError(err)
		}
		total, rest := int64(backup.PageCount())*p.pageSize, int64(backup.Remaining())*p.pageSize
		p.progress(total-rest, total)
		if isDone {
			return nil
		}
		if err := errors.Join(ctx.Err(), p.checkRoom(rest)); err != nil {
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

// primaryError gives an error of a backup the code of its class, where the driver leaves the extended one.
func primaryError(err error) error {
	const class = 0xff
	if native, ok := errors.AsType[sqlite3.Error](err); ok {
		native.Code &= class
		return native
	}
	return err
}
