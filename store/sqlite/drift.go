package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// Objects that can affect rows: tables, indexes and triggers, but neither views nor the indexes that SQLite creates for
// constraints. A trigger records the name of its table in its original case.
const (
	objectName    = `type || ' "' || name || '"'`
	selectObjects = "SELECT " + objectName + ` AS name, sql AS definition FROM sqlite_master
		WHERE type <> 'view' AND sql IS NOT NULL`
	// selectRelevant selects the expected objects and, of any others, those that affect rows of expected tables: triggers
	// and unique indexes. A database may have any number of them.
	selectRelevant = selectObjects + " AND (" + objectName + ` IN @expected OR
			'table "' || lower(tbl_name) || '"' IN @expected AND (type = 'trigger' OR sql LIKE 'CREATE UNIQUE %'))
		ORDER BY ` + objectName + " IN @expected DESC LIMIT 1000"
)

// Drift describes how the tables, indexes and triggers differ from those that the migrations of this program create:
// the first few differences, or none. Additional objects count only if they affect rows of providerd's tables. It
// returns database.ErrUnavailable.
func (v *View) Drift(ctx context.Context) ([]string, error) {
	return drift(ctx, v.Reader())
}

func drift(ctx context.Context, reader *gorm.DB) ([]string, error) {
	expected, err := migratedObjects(ctx)
	if err != nil {
		return nil, err
	}
	found, err := database.ReadObjects(reader.WithContext(ctx).
		Raw(selectRelevant, map[string]any{"expected": expected.Names()}))
	if err != nil {
		return nil, err
	}
	return expected.Drift(found), nil
}

// migratedObjects returns the objects of a new database.
func migratedObjects(ctx context.Context) (objects database.Objects, err error) {
	const path = ":memory:"
	pool, err := connectWith(path, "")
	if err != nil {
		return nil, wrapPath(path, err)
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if err := migrateUp(ctx, pool.DB, path); err != nil {
		return nil, err
	}
	objects, err = database.ReadObjects(pool.GORM.WithContext(ctx).Raw(selectObjects))
	delete(objects, fmt.Sprintf("table %q", goose.DefaultTablename))
	return objects, err
}
