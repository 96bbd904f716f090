package transfer

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// Keyset is the row of the keyset table. In the target of an unfinished copy it is a mark: Version is empty, and
// DatabaseID is that of the source.
type Keyset struct{ Version, DatabaseID, SecretKeys, DigestKey []byte }

// isMark reports whether the row marks the target of an unfinished copy.
func (k Keyset) isMark() bool { return len(k.Version) == 0 }

// readKeyset returns the row, and whether it exists.
func readKeyset(tx *gorm.DB) (found Keyset, ok bool, err error) {
	result := tx.Table("keyset").Find(&found)
	if result.Error != nil {
		return Keyset{}, false, fmt.Errorf("read the keyset of the database: %w", result.Error)
	}
	return found, result.RowsAffected > 0, nil
}

// target is the database that a copy is made into.
type target struct {
	database.Movable
}

// claim marks an empty database. If it finds the mark of an interrupted copy from the same source instead, it removes
// what must be copied again.
func (t target) claim(ctx context.Context, source Keyset) error {
	err := t.Write(ctx, func(tx *gorm.DB) error {
		found, ok, err := readKeyset(tx)
		switch {
		case err != nil:
			return err
		case !ok:
			err = mark(tx, source)
		case !found.isMark():
			return fmt.Errorf("%w: it is in use; pass an empty database", ErrNotEmpty)
		case !bytes.Equal(found.DatabaseID, source.DatabaseID):
			return fmt.Errorf("%w: it holds an unfinished copy of another database; pass an empty one", ErrNotEmpty)
		default:
			err = removeOutdated(tx)
		}
		if err != nil {
			return err
		}
		return t.SetLastKey(tx, eventsTable, afterAll)
	})
	if err != nil {
		return fmt.Errorf("start the copy: %w", err)
	}
	return nil
}

// afterAll is a key that no event has. The trigger of creates adds later events to the copy, which are removed.
const afterAll = maxKey / 2

func mark(tx *gorm.DB, source Keyset) error {
	for _, table := range tables() {
		last, err := table.last(tx)
		if err != nil {
			return err
		}
		if last > 0 {
			return fmt.Errorf("%w: there are rows in %s; pass an empty database", ErrNotEmpty, table.name)
		}
	}
	const insert = "INSERT INTO keyset (pk, version, database_id, secret_keys, digest_key) " +
		"VALUES (1, @none, @id, @none, @none)"
	return tx.Exec(insert, sql.Named("none", []byte{}), sql.Named("id", source.DatabaseID)).Error
}

func removeOutdated(tx *gorm.DB) error {
	for _, table := range slices.Backward(tables()) {
		if table.isResumed {
			continue
		}
		if err := remove(tx, table.name, table.key(), 0, maxKey); err != nil {
			return err
		}
	}
	return nil
}

// change is Change, but fails once the mark is gone: another program has then finished the copy, and the database may
// be in use.
func (t target) change(ctx context.Context, statements func(tx *gorm.DB) error) error {
	err := t.Write(ctx, func(tx *gorm.DB) error {
		found, ok, err := readKeyset(tx)
		if err != nil {
			return err
		}
		if !ok || !found.isMark() {
			return errors.New("another program has finished the copy")
		}
		return statements(tx)
	})
	if err != nil {
		return fmt.Errorf("write the copy: %w", err)
	}
	return nil
}

// replace replaces the rows with keys above after, up to the last key of the page, with the page.
func (t target) replace(ctx context.Context, table table, after int64, p page) error {
	return t.change(ctx, func(tx *gorm.DB) error {
		if err := remove(tx, table.name, table.key(), after, p.last); err != nil {
			return err
		}
		if len(p.rows) == 0 {
			return nil
		}
		if err := t.InsertAll(tx, table.name, table.columnNames(), p.rows); err != nil {
			return err
		}
		return remove(tx, eventsTable, "id", afterAll, maxKey)
	})
}

func remove(tx *gorm.DB, table, key string, after, last int64) error {
	err := tx.Exec(fmt.Sprintf("DELETE FROM %s WHERE %s > ? AND %[2]s <= ?", table, key), after, last).Error
	if err != nil {
		return fmt.Errorf("remove rows of %s: %w", table, err)
	}
	return nil
}

// has reports whether the rows with keys above after, up to the last key of the page, equal the page.
func (t target) has(ctx context.Context, table table, after int64, p page) (bool, error) {
	rest, isSame := p.encoded, true
	err := table.read(t.Reader().WithContext(ctx), after, p.last, func(found page) error {
		var ok bool
		rest, ok = bytes.CutPrefix(rest, found.encoded)
		isSame = isSame && ok
		return nil
	})
	return isSame && len(rest) == 0, err
}

// finish replaces the mark with the keyset of the copy, which makes the database usable.
func (t target) finish(
	ctx context.Context, keyset Keyset, lastKeys map[string]int64, ended func(tx *gorm.DB) error,
) error {
	return t.change(ctx, func(tx *gorm.DB) error {
		for _, table := range tables() {
			if last := lastKeys[table.name]; last > 0 {
				if err := t.SetLastKey(tx, table.name, last); err != nil {
					return err
				}
			}
		}
		if err := tx.Table("keyset").Where("pk = 1").Updates(keyset).Error; err != nil {
			return fmt.Errorf("write the keyset of the database: %w", err)
		}
		return ended(tx)
	})
}
