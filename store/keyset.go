package store

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/transfer"
)

// keysetRow is how a keyset is known to be that of a database: it must read what is in here.
type keysetRow struct {
	PK         int32 `gorm:"primaryKey;autoIncrement:false"`
	seal.Proof `gorm:"embedded"`
}

// TableName names the table for GORM.
func (keysetRow) TableName() string { return "keyset" }

func newKeysetRow(keys *seal.Keys) (*keysetRow, error) {
	proof, err := keys.Prove()
	if err != nil {
		return nil, err
	}
	return &keysetRow{PK: 1, Proof: proof}, nil
}

// openKeyring reads the keyset file of a database that has a keyset.
func openKeyring(ctx context.Context, db database.Readable, path string) (*seal.Keyring, error) {
	row, err := findKeyset(ctx, db)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: it was not made to its end", database.ErrOlder)
	}
	if err != nil {
		return nil, err
	}
	ring, err := seal.OpenKeyring(path)
	if err != nil {
		return nil, err
	}
	keys, err := ring.Current(ctx)
	if err != nil {
		return nil, err
	}
	if err := row.verify(keys); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return ring, nil
}

// openKeys returns the keys of a database that has a keyset.
func openKeys(ctx context.Context, db database.Readable, path string) (*seal.Keys, error) {
	ring, err := openKeyring(ctx, db, path)
	if err != nil {
		return nil, err
	}
	return ring.Current(ctx)
}

// provideKeyring is openKeyring for a database that may have no keyset yet: it then gets that of the file, which is
// made where there is none. Of several programs that do so at a time, one decides. Replicas on several machines would
// each make a file of their own, so that for them it must be there.
func provideKeyring(ctx context.Context, db database.Database, path string) (*seal.Keyring, error) {
	ring, err := openKeyring(ctx, db, path)
	if !errors.Is(err, database.ErrOlder) {
		return ring, err
	}
	if db.IsShared() {
		ring, err = seal.OpenKeyring(path)
	} else {
		ring, err = seal.OpenOrCreateKeyring(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	keys, err := ring.Current(ctx)
	if err != nil {
		return nil, err
	}
	if err := db.Change(ctx, func(tx *gorm.DB) error { return bindKeyset(tx, keys) }); err != nil {
		return nil, fmt.Errorf("bind keyset: %w", err)
	}
	return openKeyring(ctx, db, path)
}

// bindKeyset makes the keys those of a database that has none.
func bindKeyset(tx *gorm.DB, keys *seal.Keys) error {
	row, err := newKeysetRow(keys)
	if err != nil {
		return err
	}
	inserted := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(row)
	if inserted.Error != nil || inserted.RowsAffected == 0 {
		return inserted.Error
	}
	return addKeyEvent(tx, EventKeyCreated, keys.PrimaryID())
}

// saveKeyset makes the database demand keys that open what the primary one of these seals.
func saveKeyset(tx *gorm.DB, keys *seal.Keys) error {
	row, err := newKeysetRow(keys)
	if err != nil {
		return err
	}
	if err := tx.Save(row).Error; err != nil {
		return fmt.Errorf("note the keyset: %w", err)
	}
	return nil
}

func findKeyset(ctx context.Context, db database.Readable) (keysetRow, error) {
	var row keysetRow
	if err := db.Reader().WithContext(ctx).Take(&row).Error; err != nil {
		return keysetRow{}, fmt.Errorf("look up the keyset of the database: %w", found(err))
	}
	if transfer.IsMark(row.Sealed) {
		return keysetRow{}, database.ErrCopyIncomplete
	}
	return row, nil
}

// verify returns ErrKeysetUnusable for keys that cannot open what others seal for the database.
func (r keysetRow) verify(keys *seal.Keys) error {
	if keys.Satisfies(r.Proof) {
		return nil
	}
	id, lacks := keys.MissingKey(r.Sealed)
	lacks = lacks && keys.Authenticates(r.Proof)
	if kept := keys.RetiredTo(id); lacks && kept != "" {
		return fmt.Errorf("%w: it lacks key %d, which was retired after it had encrypted secrets of this database; put %s, "+
			"which has it, in its place or name it with --keyset", ErrKeysetUnusable, id, kept)
	}
	if lacks {
		return fmt.Errorf("%w: it lacks key %d, which has encrypted secrets of this database; bring the newest keyset here",
			ErrKeysetUnusable, id)
	}
	return fmt.Errorf("%w: it is not the keyset of this database; put the right one in its place", ErrKeysetUnusable)
}

// fileKeys are those of a file that all programs over a database share. It changes in a transaction of its own, so that
// one which finds it as it was ends before.
type fileKeys struct{ keyring *seal.Keyring }

func (f fileKeys) current(ctx context.Context) (*seal.Keys, error) { return f.keyring.Current(ctx) }

func (f fileKeys) isCurrent(ctx context.Context, keys *seal.Keys) bool {
	now, err := f.keyring.Current(ctx)
	return err == nil && now == keys
}

// refuseRetired returns ErrKeysetUnusable for keys of which the one is retired that seals.
func refuseRetired(tx *gorm.DB, keys *seal.Keys) error {
	var count int64
	err := tx.Model(&keyEvent{}).Where("event = ? AND key_id = ?", EventKeyRetired, keys.PrimaryID()).Count(&count).Error
	if err != nil {
		return fmt.Errorf("look up what keys are retired: %w", err)
	}
	if count > 0 {
		return fmt.Errorf("%w: it encrypts with key %d, which was retired; bring the newest keyset here",
			ErrKeysetUnusable, keys.PrimaryID())
	}
	return nil
}
