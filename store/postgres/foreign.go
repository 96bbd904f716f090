package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"example.com/providerd/store/database"
)

// CreateAlone is Create, except that it also returns ErrForeign if a database without providerd's tables has any other
// table.
func CreateAlone(ctx context.Context, url URL, logger *slog.Logger) (*Database, error) {
	return open(ctx, url, logger, func(ctx context.Context, db *sql.DB) error {
		_, err := readSchema(ctx, db)
		if errors.Is(err, database.ErrNoDatabase) {
			err = checkTables(ctx, db, func(string) bool { return true })
		}
		if err != nil {
			return err
		}
		return migrator(logger)(ctx, db)
	})
}

// checkNames returns ErrForeign if, in a database without providerd's tables, another program uses one of their names.
// Other tables are fine: programs may share a database.
func checkNames(ctx context.Context, db *sql.DB) error {
	names, err := migratedTables()
	if err != nil {
		return err
	}
	return checkTables(ctx, db, func(table string) bool { return slices.Contains(names, table) })
}

// checkTables returns ErrForeign, with the first few names, if isForeign reports true for tables of another program.
func checkTables(ctx context.Context, db *sql.DB, isForeign func(table string) bool) error {
	tables, err := otherTables(ctx, db)
	if err != nil {
		return err
	}
	tables = slices.DeleteFunc(tables, func(table string) bool { return !isForeign(table) })
	const most = 5
	more := ""
	switch {
	case len(tables) == 0:
		return nil
	case len(tables) > most:
		tables, more = tables[:most], " and more"
	}
	return fmt.Errorf("%w: it has tables of another program: %q%s", database.ErrForeign, tables, more)
}

// otherTables returns the tables and views in the current schema, except those of goose and of extensions. It returns
// none if another replica has created providerd's tables in the meantime: one snapshot has either all of them or none.
func otherTables(ctx context.Context, db *sql.DB) (tables []string, err error) {
	rows, err := db.QueryContext(ctx, `SELECT c.relname::text
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'f', 'v', 'm') AND NOT EXISTS (
			SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
		ORDER BY 1`)
	if err != nil {
		return nil, fmt.Errorf("list the tables: %w", unavailable(err))
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			return nil, fmt.Errorf("list the tables: %w", err)
		}
		switch table {
		case supportTable:
			return nil, nil
		case goose.DefaultTablename, lock.DefaultLockTableName:
		default:
			tables = append(tables, table)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list the tables: %w", unavailable(err))
	}
	return tables, nil
}

// migratedTables returns the names of the tables that the migrations create.
func migratedTables() (names []string, err error) {
	statement := regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)
	paths, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	for _, path := range paths {
		text, err := migrations.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read migrations: %w", err)
		}
		for _, match := range statement.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names, nil
}
