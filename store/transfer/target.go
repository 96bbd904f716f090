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

// proof is the row of the keyset table. In a database that a copy is made into, it is a mark: it has nothing sealed,
// and the fingerprint of the source.
type proof struct {
	Sealed      []byte
	Fingerprint []byte
}

// MarksIncomplete tells whether what the keyset table has sealed marks a database whose copy is not finished.
func MarksIncomplete(sealed []byte) bool { return len(sealed) == 0 }

// readProof returns false where there is no row.
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

// claim marks an empty database, or finds the mark of an interrupted copy of the same source, and removes what is to be
// copied again.
func (t target) claim(ctx context.Context, source proof) error {
	err := t.Change(ctx, func(tx *gorm.DB) error {
		found, ok, err := readProof(tx)
		switch {
		case err != nil:
			return err
		case !ok:
			return mark(tx, source)
		case !MarksIncomplete(found.Sealed):
			return fmt.Errorf("%w: it is in use; name an empty one", ErrNotEmpty)
		case !bytes.Equal(found.Fingerprint, source.Fingerprint):
			return fmt.Errorf("%w: it has an unfinished copy of another database; name an empty one", ErrNotEmpty)
		default:
			return removeOutdated(tx)
		}
	})
	if err != nil {
		return fmt.Errorf("begin the copy: %w", err)
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
			return fmt.Errorf("%w: there are rows in %s; name an empty one", ErrNotEmpty, table.name)
		}
	}
	return tx.Exec("INSERT INTO keyset (pk, sealed, fingerprint) VALUES (1, ?, ?)", []byte{}, source.Fingerprint).Error
}

func removeOutdated(tx *gorm.DB) error {
	for _, table := range slices.Backward(tables()) {
		if table.isResumed {
			continue
		}
		if err := remove(tx, table.name, table.key(), 0, lastOfAll); err != nil {
			return err
		}
	}
	return nil
}

// change is Change for as long as the database has the mark: without it, another copy has finished, and the database
// may be in use.
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

// replace puts a page in the place of the rows with keys from behind after up to the last one of the page.
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

// has tells whether the rows with keys from behind after up to the last one of the page are those of the page.
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

// finish makes the database one that can be used, and whose keyset table has what is wanted.
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
