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

// openKeyringOf reads the keyset file of a database that is sealed.
func openKeyringOf(ctx context.Context, db *sql.DB, path string) (*keyring, error) {
	ring, err := openKeyring(path)
	if err != nil {
		return nil, err
	}
	keys, err := ring.current()
	if err != nil {
		return nil, err
	}
	var row keysetRow
	err = db.QueryRowContext(ctx, "SELECT sealed, fingerprint FROM keyset").Scan(&row.Sealed, &row.Fingerprint)
	if err != nil {
		return nil, fmt.Errorf("look up the keyset of the database: %w", classify(err))
	}
	if _, err := keys.unseal(row.Sealed, keysetProof()); err != nil || !keys.matches(row.Fingerprint, nil) {
		return nil, fmt.Errorf("%w: %s is not the keyset of this database; put the right one in its place",
			ErrKeysetUnusable, path)
	}
	return ring, nil
}

// createKeyringOf is openKeyringOf for a database that may not be sealed yet, and then makes the file.
func createKeyringOf(ctx context.Context, db *sql.DB, path string) (*keyring, error) {
	var sealed int
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE name = 'keyset'").Scan(&sealed)
	if err == nil && sealed > 0 {
		err = db.QueryRowContext(ctx, "SELECT count(*) FROM keyset").Scan(&sealed)
	}
	if err != nil {
		return nil, fmt.Errorf("look up the keyset of the database: %w", classify(err))
	}
	if sealed > 0 {
		return openKeyringOf(ctx, db, path)
	}
	return createKeyring(path)
}

// sealStored is the migration that seals what earlier versions stored in clear text, fingerprints included.
func (r *keyring) sealStored(ctx context.Context, tx *sql.Tx) error {
	keys, err := r.current()
	if err != nil {
		return err
	}
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: tx}), gormConfig())
	if err != nil {
		return fmt.Errorf("seal: %w", classify(err))
	}
	db = db.WithContext(ctx)
	for _, column := range sealedColumns() {
		err := rewriteAll(db, column, func(pk int32, text []byte) ([]byte, error) {
			return keys.seal(NewSecret(string(text)), column.place(pk))
		})
		if err != nil {
			return err
		}
	}
	fingerprints := sealedColumn{table: Audit{}.TableName(), name: "fingerprint"}
	err = rewriteAll(db, fingerprints, func(_ int32, digest []byte) ([]byte, error) {
		return keys.fingerprint(digest)
	})
	if err != nil {
		return err
	}
	row, err := newKeysetRow(keys)
	if err != nil {
		return err
	}
	if err := db.Create(row).Error; err != nil {
		return fmt.Errorf("seal: %w", classify(err))
	}
	return addKeyEvent(db, EventKeyCreated, keys)
}

func rewriteAll(db *gorm.DB, column sealedColumn, change func(pk int32, value []byte) ([]byte, error)) error {
	for after := int32(0); ; {
		values, err := column.values(db.Where("pk > ? AND "+column.name+" IS NOT NULL", after))
		if err != nil || len(values) == 0 {
			return err
		}
		for _, value := range values {
			changed, err := change(value.PK, value.Value)
			if err != nil {
				return err
			}
			if err := column.update(db, value.PK, changed); err != nil {
				return err
			}
		}
		after = values[len(values)-1].PK
	}
}

// scrub is the migration that writes the whole database anew, because what was overwritten is still in unused parts of
// its pages and in its log.
func scrub(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, "VACUUM"); err != nil {
		return fmt.Errorf("scrub: %w", classify(err))
	}
	var busy, frames, copied int
	err := db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &copied)
	if err != nil {
		return fmt.Errorf("scrub: %w", classify(err))
	}
	if busy != 0 {
		return errors.New("scrub: another program uses the database; stop it and start again")
	}
	return nil
}
