package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// What may decide over rows: no view, and no index that SQLite makes itself for a constraint. A trigger has the name of
// its table as it was spelt.
const (
	objectName    = `type || ' "' || name || '"'`
	selectObjects = "SELECT " + objectName + ` AS name, sql AS definition FROM sqlite_master
		WHERE type <> 'view' AND sql IS NOT NULL`
	// Of what others have added, whatever decides over rows of providerd's. A database may have no end of it.
	selectDeciding = selectObjects + " AND (" + objectName + ` IN @expected OR
			'table "' || lower(tbl_name) || '"' IN @expected AND (type = 'trigger' OR sql LIKE 'CREATE UNIQUE %'))
		ORDER BY ` + objectName + " IN @expected DESC LIMIT 1000"
)

// Drift describes how the tables, indexes and triggers differ from those that the migrations of this program make: the
// first few differences, none where there is none. What others have added is one only where it decides over rows of
// providerd's. It returns database.ErrUnavailable.
func (v *View) Drift(ctx context.Context) ([]string, error) {
	level, err := SchemaVersion()
	if err != nil {
		return nil, err
	}
	return drift(ctx, v.Reader(), level)
}

// drift is View.Drift for a database of a level that this program knows.
func drift(ctx context.Context, reader *gorm.DB, level int64) ([]string, error) {
	expected, err := migratedObjects(ctx, level)
	if err != nil {
		return nil, err
	}
	found, err := readObjects(reader.WithContext(ctx).
		Raw(selectDeciding, map[string]any{"expected": expected.Names()}))
	if err != nil {
		return nil, err
	}
	return expected.Drift(found), nil
}

// migratedObjects are those of a new database of a level.
func migratedObjects(ctx context.Context, level int64) (objects database.Objects, err error) {
	const path = ":memory:"
	pool, err := connectWith(path, "", 1)
	if err != nil {
		return nil, wrapPath(path, err)
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if err := migrateUp(ctx, pool.DB, path, level); err != nil {
		return nil, err
	}
	objects, err = readObjects(pool.GORM.WithContext(ctx).Raw(selectObjects))
	delete(objects, fmt.Sprintf("table %q", goose.DefaultTablename))
	return objects, err
}

func readObjects(query *gorm.DB) (database.Objects, error) {
	var rows []struct{ Name, Definition string }
	if err := query.Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	objects := database.Objects{}
	for _, row := range rows {
		objects[row.Name] = row.Definition
	}
	return objects, nil
}
