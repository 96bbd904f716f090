package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"

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
			err = checkTables(ctx, db, nil)
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
	return checkTables(ctx, db, names)
}

// selectOthers selects the first few tables and views in the current schema that have one of the names, if there are
// any names, except those of goose and of extensions. It selects none if another replica has created providerd's tables
// in the meantime: one snapshot has either all of them or none.
const selectOthers = `WITH relations AS (
		SELECT * FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'f', 'v', 'm')
	), others AS (
		SELECT relname FROM relations r WHERE ($1::text[] IS NULL OR relname = ANY ($1))
			AND relname NOT IN ('` + goose.DefaultTablename + `', '` + lock.DefaultLockTableName + `') AND NOT EXISTS (
				SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = r.oid AND d.deptype = 'e')
			AND NOT EXISTS (SELECT FROM relations WHERE relname = '` + supportTable + `')
		ORDER BY 1 LIMIT 5
	) SELECT coalesce(json_agg(relname), '[]')::text FROM others`

// checkTables returns ErrForeign if selectOthers selects any table.
func checkTables(ctx context.Context, db *sql.DB, names []string) error {
	var text []byte
	if err := db.QueryRowContext(ctx, selectOthers, names).Scan(&text); err != nil {
		return fmt.Errorf("list the tables: %w", unavailable(err))
	}
	var tables []string
	if err := json.Unmarshal(text, &tables); err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	if len(tables) > 0 {
		return fmt.Errorf("%w: it has tables of another program: %q", database.ErrForeign, tables)
	}
	return nil
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
