package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// proof is the row of the keyset table. In the target of an unfinished copy it is a mark: Sealed is empty, and
// Fingerprint is that of the source.
type proof struct {
	Sealed      []byte
	Fingerprint []byte
}

// MarksIncomplete reports whether the sealed column of the keyset table marks the target of an unfinished copy.
func MarksIncomplete(sealed []byte) bool { return len(sealed) == 0 }

// readProof returns ok false if there is no row.
func readProof(tx *gorm.DB) (found proof, ok bool, err error) {
	result := tx.Raw("SELECT sealed, fingerprint FROM keyset WHERE pk = 1").Scan(&found)
	if result.Error != nil {
		return proof{}, false, fmt.Errorf("read the keyset of the database: %w", result.Error)
	}
	return found, result.RowsAffected > 0, nil
}

// target is the database that a copy is made into.
type target struct {
	database.Movable
}

// claim marks an empty database. If it finds the mark of an interrupted copy from the same source instead, it removes
// what must be copied again.
func (t target) claim(ctx context.Context, source proof) error {
	err := t.Change(ctx, func(tx *gorm.DB) error {
		found, ok, err := readProof(tx)
		switch {
		case err != nil:
			return err
		case !ok:
			return mark(tx, source)
		case !MarksIncomplete(found.Sealed):
			return fmt.Errorf("%w: it is in use; pass an empty database", ErrNotEmpty)
		case !bytes.Equal(found.Fingerprint, source.Fingerprint):
			return fmt.Errorf("%w: it holds an unfinished copy of another database; pass an empty one", ErrNotEmpty)
		default:
			return removeOutdated(tx)
		}
	})
	if err != nil {
		return fmt.Errorf("start the copy: %w", err)
	}
	return nil
}

func mark(tx *gorm.DB, source proof) error {
	for _, table := range tables() {
		last, err := table.last(tx)
		if err != nil {
			return err
		}
		if last > 0 {
			return fmt.Errorf("%w: there are rows in %s; pass an empty database", ErrNotEmpty, table.name)
		}
	}
	return tx.Exec("INSERT INTO keyset (pk, sealed, fingerprint) VALUES (1, ?, ?)", []byte{}, source.Fingerprint).Error
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
	err := t.Change(ctx, func(tx *gorm.DB) error {
		found, ok, err := readProof(tx)
		if err != nil {
			return err
		}
		if !ok || !MarksIncomplete(found.Sealed) {
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
		for _, name := range append(table.extensions, table.name) {
			if err := remove(tx, name, table.key(), after, p.last); err != nil {
				return err
			}
		}
		if len(p.rows) == 0 {
			return nil
		}
		return t.Insert(tx, table.name, table.columnNames(), p.rows)
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

// finish replaces the mark with the proof of the source, which makes the database usable, and checks the keyset table.
func (t target) finish(ctx context.Context, source proof, wanted Content, lastKeys map[string]int64) error {
	return t.change(ctx, func(tx *gorm.DB) error {
		for _, table := range tables() {
			if last := lastKeys[table.name]; last > 0 {
				if err := t.SetLastKey(tx, table.name, last); err != nil {
					return err
				}
			}
		}
		err := tx.Exec("UPDATE keyset SET sealed = ?, fingerprint = ?", source.Sealed, source.Fingerprint).Error
		if err != nil {
			return fmt.Errorf("write the keyset of the database: %w", err)
		}
		content, err := keyset().content(tx, func(page) error { return nil })
		if err == nil && content != wanted {
			err = differs(keyset())
		}
		return err
	})
}
