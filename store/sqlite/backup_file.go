//nolint:wrapcheck // Callers say of which file they are.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// backupFile is a file with a whole database, which nobody changes.
type backupFile struct {
	db *gorm.DB
}

var _ database.Readable = (*backupFile)(nil)

// Reader returns a handle whose connections cannot write.
func (f *backupFile) Reader() *gorm.DB { return f.db }

// verify makes sure that the file at path has a whole database that this program knows, and passes check. It must have
// so many rows in each table, unless rows is nil. Errors call it by its name.
func verify(ctx context.Context, path, name string, rows []tableRows, check Check) (err error) {
	db, err := connectUnchanged(path)
	if err != nil {
		// What GORM was asked to open has a name that nobody knows.
		return fmt.Errorf("read %s: %w", name, errors.Unwrap(err))
	}
	defer func() { err = errors.Join(err, closePool(db)) }()
	pool, err := db.DB()
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := checkKnown(ctx, pool, name); err != nil {
		return err
	}
	if err := checkIntegrity(ctx, pool); err != nil {
		return fmt.Errorf("check %s: %w", name, err)
	}
	if rows != nil {
		found, err := countRows(ctx, pool)
		if err != nil {
			return fmt.Errorf("check %s: %w", name, err)
		}
		if !slices.Equal(found, rows) {
			return fmt.Errorf("%w: %s has the rows %v, the database %v", database.ErrUnavailable, name, found, rows)
		}
	}
	return check(&backupFile{db})
}

// checkIntegrity lets SQLite look at each page, each row and each index.
func checkIntegrity(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return classify(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: it is damaged: %s", database.ErrUnavailable, verdict)
	}
	return nil
}

// tableRows is how many rows a table has.
type tableRows struct {
	table string
	rows  int64
}

// queries are what a database and one connection to it can run.
type queries interface {
	QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row
}

// countRows counts those of each table.
func countRows(ctx context.Context, db queries) ([]tableRows, error) {
	tables, err := tableNames(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", classify(err))
	}
	counts := make([]tableRows, 0, len(tables))
	for _, table := range tables {
		count := tableRows{table: table}
		err := db.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FROM %q", table)).Scan(&count.rows)
		if err != nil {
			return nil, fmt.Errorf("count the rows of %s: %w", table, classify(err))
		}
		counts = append(counts, count)
	}
	return counts, nil
}

func tableNames(ctx context.Context, db queries) (names []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}
