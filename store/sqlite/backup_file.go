package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

// replaced is in the names of replaced databases.
const replaced = "replaced"

// LeftoverLinks returns the hard links to the database at path that are named like databases it has replaced. A restore
// leaves one if it is killed before the backup has its name. It returns a file system error.
func LeftoverLinks(path string) (links []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("find hard links to the database: %w", err)
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("find hard links to the database: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), filepath.Base(path)+"."+replaced+"-") {
			continue
		}
		// Skip files that were removed since ReadDir.
		if info, err := entry.Info(); err == nil && os.SameFile(own, info) {
			links = append(links, filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	return links, nil
}

// removeLeftovers removes what killed restores left next to the database at path: hard links to it, and drafts other
// than the caller's.
func removeLeftovers(path, draft string) error {
	names, err := LeftoverLinks(path)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("find temporary files of the database: %w", err)
	}
	for _, entry := range entries {
		number, isDraft := strings.CutPrefix(entry.Name(), "."+filepath.Base(path))
		if name := filepath.Join(dir, entry.Name()); isDraft && name != draft && isDraftNumber(number) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// isDraftNumber reports whether a string is one of the long numbers in the names of drafts.
func isDraftNumber(text string) bool {
	const shortest = 8
	return len(text) >= shortest && strings.Trim(text, "0123456789") == ""
}
