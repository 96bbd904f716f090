package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
)

// keysetRow is how a keyset is known to be that of a database: it must read what is in here.
type keysetRow struct {
	PK          int32 `gorm:"primaryKey;autoIncrement:false"`
	Sealed      []byte
	Fingerprint []byte
}

// TableName names the table for GORM.
func (keysetRow) TableName() string { return "keyset" }

func keysetProof() place { return place{table: "keyset", column: "sealed", pk: 1} }

func newKeysetRow(keys *keys) (*keysetRow, error) {
	sealed, err := keys.seal(Secret{}, keysetProof())
	if err != nil {
		return nil, err
	}
	fingerprint, err := keys.fingerprint(nil)
	if err != nil {
		return nil, err
	}
	return &keysetRow{PK: 1, Sealed: sealed, Fingerprint: fingerprint}, nil
}

// proves tells whether the keys are those that the row was made with.
func (r keysetRow) proves(keys *keys) bool {
	_, err := keys.unseal(r.Sealed, keysetProof())
	return err == nil && keys.matches(r.Fingerprint, nil)
}

// openKeyringOf reads the keyset file of a database. It returns sql.ErrNoRows for a database that has no keyset yet,
// ErrNoKeyset or ErrKeysetUnusable.
func openKeyringOf(ctx context.Context, db *sql.DB, path string) (*keyring, error) {
	var row keysetRow
	err := db.QueryRowContext(ctx, "SELECT sealed, fingerprint FROM keyset").Scan(&row.Sealed, &row.Fingerprint)
	if err != nil {
		return nil, fmt.Errorf("look up the keyset of the database: %w", classify(err))
	}
	ring, err := openKeyring(path)
	if err != nil {
		return nil, err
	}
	keys, err := ring.current()
	if err != nil {
		return nil, err
	}
	if !row.proves(keys) {
		return nil, fmt.Errorf("%w: %s is not the keyset of this database; put the right one in its place",
			ErrKeysetUnusable, path)
	}
	return ring, nil
}

// provideKeyringOf is openKeyringOf for a database that may have no keyset yet. It then uses the file at path, which it
// makes where there is none.
func provideKeyringOf(ctx context.Context, db *sql.DB, path string) (*keyring, error) {
	ring, err := openKeyringOf(ctx, db, path)
	if !errors.Is(err, sql.ErrNoRows) {
		return ring, err
	}
	if ring, err = createKeyring(path); err != nil {
		return nil, err
	}
	keys, err := ring.current()
	if err != nil {
		return nil, err
	}
	return ring, bindKeyset(ctx, db, keys)
}

// bindKeyset makes the keys those of the database.
func bindKeyset(ctx context.Context, pool *sql.DB, keys *keys) error {
	row, err := newKeysetRow(keys)
	if err != nil {
		return err
	}
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), gormConfig())
	if err != nil {
		return fmt.Errorf("bind keyset: %w", classify(err))
	}
	err = db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(row).Error; err != nil {
			return fmt.Errorf("bind keyset: %w", classify(err))
		}
		return addKeyEvent(tx, EventKeyCreated, keys)
	})
	if err != nil {
		return fmt.Errorf("bind keyset: %w", classify(err))
	}
	return nil
}
