package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/transfer"
)

// keysetRow proves that a keyset is that of the database: the keyset must open it.
type keysetRow struct {
	PK         int32 `gorm:"primaryKey;autoIncrement:false"`
	seal.Proof `gorm:"embedded"`
}

// TableName returns the table for GORM.
func (keysetRow) TableName() string { return "keyset" }

func newKeysetRow(keys *seal.Keys) (*keysetRow, error) {
	proof, err := keys.Prove()
	if err != nil {
		return nil, err
	}
	return &keysetRow{PK: 1, Proof: proof}, nil
}

// openKeyring opens the keyset file of a database that has a keyset.
func openKeyring(ctx context.Context, db database.Readable, path string) (*seal.Keyring, error) {
	row, err := findKeyset(ctx, db)
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%w: its creation was not finished", database.ErrOlder)
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

// openKeys returns the current keys of openKeyring.
func openKeys(ctx context.Context, db database.Readable, path string) (*seal.Keys, error) {
	ring, err := openKeyring(ctx, db, path)
	if err != nil {
		return nil, err
	}
	return ring.Current(ctx)
}

// openOrCreateKeyring is like openKeyring, but binds the keyset of the file to a database that has none, and creates a
// missing file. If several programs do so concurrently, one wins. For a shared database the file must exist, because
// replicas on several hosts would each create their own.
func openOrCreateKeyring(ctx context.Context, db database.Database, path string) (*seal.Keyring, error) {
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

// bindKeyset stores the proof of the keys in a database that has none.
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

// saveKeyset makes the database require the primary key of these.
func saveKeyset(tx *gorm.DB, keys *seal.Keys) error {
	row, err := newKeysetRow(keys)
	if err != nil {
		return err
	}
	if err := tx.Save(row).Error; err != nil {
		return fmt.Errorf("save keyset: %w", err)
	}
	return nil
}

func findKeyset(ctx context.Context, db database.Readable) (keysetRow, error) {
	var row keysetRow
	if err := db.Reader().WithContext(ctx).Take(&row).Error; err != nil {
		return keysetRow{}, fmt.Errorf("find the keyset of the database: %w", found(err))
	}
	if transfer.MarksIncomplete(row.Sealed) {
		return keysetRow{}, database.ErrCopyIncomplete
	}
	return row, nil
}

// verify returns ErrKeysetUnusable if the keys cannot open the secrets of the database.
func (r keysetRow) verify(keys *seal.Keys) error {
	if keys.Satisfies(r.Proof) {
		return nil
	}
	id, isMissing := keys.MissingKey(r.Sealed)
	isMissing = isMissing && keys.Authenticates(r.Proof)
	if kept := keys.RetiredTo(id); isMissing && kept != "" {
		return fmt.Errorf("%w: it lacks key %d, which was retired but encrypts secrets of this database; restore %s, "+
			"which has the key, or pass it with --keyset", ErrKeysetUnusable, id, kept)
	}
	if isMissing {
		return fmt.Errorf("%w: it lacks key %d, which encrypts secrets of this database; copy the newest keyset here",
			ErrKeysetUnusable, id)
	}
	return fmt.Errorf("%w: it belongs to another database; restore the keyset of this one", ErrKeysetUnusable)
}

// fileKeys are the keys of a file that all programs over a database share. The file changes within a transaction, so a
// transaction that finds it unchanged commits before.
type fileKeys struct{ keyring *seal.Keyring }

func (f fileKeys) current(ctx context.Context) (*seal.Keys, error) { return f.keyring.Current(ctx) }

func (f fileKeys) isCurrent(ctx context.Context, keys *seal.Keys) bool {
	now, err := f.keyring.Current(ctx)
	return err == nil && now == keys
}

// checkNotRetired returns ErrKeysetUnusable if the primary key is retired.
func checkNotRetired(tx *gorm.DB, keys *seal.Keys) error {
	var count int64
	err := tx.Model(&keyEvent{}).Where("event = ? AND key_id = ?", EventKeyRetired, keys.PrimaryID()).Count(&count).Error
	if err != nil {
		return fmt.Errorf("find retired keys: %w", err)
	}
	if count > 0 {
		return fmt.Errorf("%w: it encrypts with key %d, which was retired; copy the newest keyset here",
			ErrKeysetUnusable, keys.PrimaryID())
	}
	return nil
}

// ID returns an identifier of the database and its copies, derived from its keyset. It returns ErrUnavailable.
func (s *Store) ID(ctx context.Context) (string, error) {
	keys, err := s.keyring.Current(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	mac, err := keys.AuthenticateSecret(seal.Secret{}, "database")
	if err != nil {
		return "", fmt.Errorf("compute id: %w", err)
	}
	const length = 8
	return hex.EncodeToString(mac[len(mac)-length:]), nil
}
