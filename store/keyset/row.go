package keyset

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
)

// Row is the only row of its table.
type Row struct {
	PK int64 `gorm:"primaryKey;autoIncrement:false"`
	// Version is random and changes with every change of the row.
	Version    []byte
	DatabaseID []byte
	// Wrapped is the data keys.
	seal.Wrapped `gorm:"embedded"`
}

// TableName returns the table for GORM.
func (Row) TableName() string { return "keyset" }

// randomBytes returns a new version of the keyset, or a new id of a database.
func randomBytes() []byte {
	const length = 16
	value := make([]byte, length)
	_, _ = rand.Read(value)
	return value
}

// Find returns the keyset of a database. It returns database.ErrOlder if it has none, ErrCorrupt if it has lost
// it.
func Find(tx *gorm.DB) (row Row, err error) {
	db := tx.Session(&gorm.Session{NewDB: true})
	var sealed []int64
	err = tx.Take(&row).Error
	isMissing := errors.Is(err, database.ErrNotFound)
	if isMissing {
		err = db.Table(records.Table).Limit(1).Pluck("pk", &sealed).Error
	}
	switch {
	case err != nil:
		return row, fmt.Errorf("read the keyset of the database: %w", err)
	case len(sealed) > 0:
		return row, fmt.Errorf("%w: table keyset is empty, so no secret can be decrypted", database.ErrCorrupt)
	case isMissing:
		return row, fmt.Errorf("%w: its creation was not finished", database.ErrOlder)
	default:
		return row, nil
	}
}

// Open returns the data keys of a database, which the master keys in the file at path decrypt.
//
// It returns database.ErrOlder if the database has no keyset, ErrNoKeyset, ErrKeysetUnusable or ErrUnavailable.
func Open(ctx context.Context, db database.Readable, path string) (*seal.Keys, error) {
	row, err := Find(db.Reader().WithContext(ctx))
	if err != nil {
		return nil, err
	}
	keys, _, err := row.openWith(path)
	return keys, err
}

// openWith decrypts the data keys with the master keys in the file at path.
func (r Row) openWith(path string) (*seal.Keys, *seal.MasterKeys, error) {
	master, err := seal.ReadMasterKeys(path)
	if err != nil {
		return nil, nil, err
	}
	keys, err := r.Open(master, r.DatabaseID)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, master, nil
}

// Create stores new data keys in a database that has none, which the primary master key in the file at path encrypts.
// It creates the file, unless the database is shared: replicas on several hosts would each create their own.
func Create(ctx context.Context, db database.Database, path string) error {
	if _, err := Find(db.Reader().WithContext(ctx)); !errors.Is(err, database.ErrOlder) {
		return nil
	}
	read := seal.ReadOrCreateMasterKeys
	if db.IsShared() {
		read = seal.ReadMasterKeys
	}
	master, err := read(path)
	if err != nil {
		return err
	}
	if err := db.Write(ctx, func(tx *gorm.DB) error { return create(tx, master) }); err != nil {
		return fmt.Errorf("create the keyset of the database: %w", err)
	}
	return nil
}

// create is Create in a transaction. If several programs do so, one wins.
func create(tx *gorm.DB, master *seal.MasterKeys) error {
	keys, err := seal.NewKeys()
	if err != nil {
		return err
	}
	row, err := newRow(keys, master)
	if err != nil {
		return err
	}
	inserted := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
	if inserted.Error != nil || inserted.RowsAffected == 0 {
		return inserted.Error
	}
	return event.Add(tx, event.Event{Event: event.KeyCreated, Subject: int64(keys.PrimaryID())})
}

// CopyOf returns the keyset for a copy of a database: the same data keys for another database id, encrypted by the
// primary master key in the file at path. It returns the errors of Open.
func CopyOf(source *gorm.DB, path string) (Row, error) {
	row, err := Find(source)
	if err != nil {
		return row, err
	}
	keys, master, err := row.openWith(path)
	if err != nil {
		return row, err
	}
	return newRow(keys, master)
}

// newRow returns the keyset of a new database, which the primary master key encrypts.
func newRow(keys *seal.Keys, master *seal.MasterKeys) (row Row, err error) {
	row = Row{PK: 1, Version: randomBytes(), DatabaseID: randomBytes()}
	row.Wrapped, err = keys.Wrap(master, master.PrimaryID(), row.DatabaseID)
	return row, err
}
