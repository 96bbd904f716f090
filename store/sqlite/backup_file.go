package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// backupFile is a complete database file that no program changes.
type backupFile struct{ pool database.Pool }

// Reader returns a handle whose connections cannot write.
func (f backupFile) Reader() *gorm.DB { return f.pool.GORM }

// verify checks that the file at path is an intact database of a schema version that this program knows, that its
// tables have as many rows as in rows, unless that is nil, and that it passes check. Errors refer to the file as name.
func verify(ctx context.Context, path, name string, rows map[string]int64, check Check) (err error) {
	pool, err := connectImmutable(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, database.ClosePools(pool)) }()
	if err := checkSchema(database.Schema.CheckKnown)(ctx, pool.DB, name); err != nil {
		return err
	}
	if err := checkIntegrity(ctx, pool.DB); err != nil {
		return fmt.Errorf("check %s: %w", name, err)
	}
	if rows != nil {
		found, err := countRows(pool.GORM.WithContext(ctx))
		if err != nil {
			return fmt.Errorf("check %s: %w", name, err)
		}
		if !maps.Equal(found, rows) {
			return fmt.Errorf("%w: row counts differ: %s has %v, the database has %v",
				database.ErrUnavailable, name, found, rows)
		}
	}
	return check(backupFile{pool})
}

// checkIntegrity makes SQLite check every page, row and index.
func checkIntegrity(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return classify(err)
	}
	if verdict != "ok" {
		return fmt.Errorf("%w: %s", database.ErrCorrupt, strings.ReplaceAll(verdict, "\n", " "))
	}
	return nil
}

// countRows returns the number of rows of each table.
func countRows(db *gorm.DB) (map[string]int64, error) {
	var tables []string
	if err := db.Raw("SELECT name FROM sqlite_master WHERE type = 'table'").Scan(&tables).Error; err != nil {
		return nil, fmt.Errorf("list the tables: %w", err)
	}
	counts := make(map[string]int64, len(tables))
	for _, table := range tables {
		var count int64
		// GORM does not quote a name that contains a space.
		quoted := `"` + strings.ReplaceAll(table, `"`, `""`) + `"`
		if err := db.Raw("SELECT count(*) FROM " + quoted).Scan(&count).Error; err != nil {
			return nil, fmt.Errorf("count the rows of %s: %w", table, err)
		}
		counts[table] = count
	}
	return counts, nil
}
