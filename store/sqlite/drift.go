package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"

	"example.com/providerd/store/database"
)

// selectObjects reads what may decide over rows: no view, and no index that SQLite makes itself for a constraint. A
// trigger has the name of its table as it was spelt.
const selectObjects = `SELECT type, name, lower(tbl_name), coalesce(sql, ''), sql LIKE 'CREATE UNIQUE %'
	FROM sqlite_master WHERE type IN ('table', 'trigger') OR type = 'index' AND sql IS NOT NULL`

// mostAdded bounds what is read of a database that has no end of objects.
const mostAdded = 1000

// Drift describes how the tables, indexes and triggers differ from those that the migrations of this program make: the
// first few differences, none where there is none. What others have added is one only where it decides over rows of
// providerd's. It returns database.ErrUnavailable.
func (v *View) Drift(ctx context.Context) ([]string, error) {
	expected, err := migratedObjects(ctx)
	if err != nil {
		return nil, err
	}
	found, err := readObjects(ctx, v.reader.DB, expected)
	if err != nil {
		return nil, err
	}
	return expected.Drift(found), nil
}

// migratedObjects are those of a new database.
func migratedObjects(ctx context.Context) (objects database.Objects, err error) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return nil, fmt.Errorf("open a database in memory: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	level, err := Level()
	if err != nil {
		return nil, err
	}
	if err := migrateUp(ctx, db, ":memory:", level); err != nil {
		return nil, err
	}
	objects, err = readObjects(ctx, db, nil)
	delete(objects, objectName("table", goose.DefaultTablename))
	return objects, err
}

// readObjects returns the objects that are expected, and what else decides over rows of the tables that are. It returns
// all where expected is nil.
func readObjects(ctx context.Context, db *sql.DB, expected database.Objects) (found database.Objects, err error) {
	rows, err := db.QueryContext(ctx, selectObjects)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", classify(err))
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	found = database.Objects{}
	for added := 0; rows.Next(); {
		var kind, name, table, definition string
		var isUnique bool
		if err := rows.Scan(&kind, &name, &table, &definition, &isUnique); err != nil {
			return nil, fmt.Errorf("read the schema: %w", classify(err))
		}
		object := objectName(kind, name)
		_, isExpected := expected[object]
		_, isOfTable := expected[objectName("table", table)]
		if isAdded := isOfTable && !isExpected && (kind == "trigger" || isUnique); isAdded && added < mostAdded {
			added++
			found[object] = definition
		}
		if expected == nil || isExpected {
			found[object] = definition
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the schema: %w", classify(err))
	}
	return found, nil
}

func objectName(kind, name string) string { return fmt.Sprintf(`%s "%s"`, kind, name) }
