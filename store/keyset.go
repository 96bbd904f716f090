package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/seal"
)

// keysetRow is the only row of its table.
type keysetRow struct {
	PK int64 `gorm:"primaryKey;autoIncrement:false"`
	// Version is random and changes with every change of the row.
	Version    []byte
	DatabaseID []byte
	// Wrapped is the data keys.
	seal.Wrapped `gorm:"embedded"`
}

// TableName returns the table for GORM.
func (keysetRow) TableName() string { return "keyset" }

// randomBytes returns a new version of the keyset, or a new id of a database.
func randomBytes() []byte {
	const length = 16
	value := make([]byte, length)
	_, _ = rand.Read(value)
	return value
}

// findKeyset returns the keyset of a database. It returns database.ErrOlder if it has none, ErrCorrupt if it has lost
// it.
func findKeyset(tx *gorm.DB) (row keysetRow, err error) {
	db := tx.Session(&gorm.Session{NewDB: true})
	var sealed []Provider
	err = tx.Take(&row).Error
	isMissing := errors.Is(err, database.ErrNotFound)
	if isMissing {
		err = db.Select("pk").Limit(1).Find(&sealed).Error
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

// open decrypts the data keys with the master keys in the file at path.
func (r keysetRow) open(path string) (*seal.Keys, *seal.MasterKeys, error) {
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

// createKeyset stores new data keys in a database that has none, which the primary master key encrypts. If several
// programs do so, one wins.
func createKeyset(tx *gorm.DB, master *seal.MasterKeys) error {
	keys, err := seal.NewKeys()
	if err != nil {
		return err
	}
	row, err := newKeysetRow(keys, master)
	if err != nil {
		return err
	}
	inserted := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
	if inserted.Error != nil || inserted.RowsAffected == 0 {
		return inserted.Error
	}
	return event.Add(tx, event.Event{Event: event.KeyCreated, Subject: int64(keys.PrimaryID())})
}

// newKeysetRow returns the keyset of a new database, which the primary master key encrypts.
func newKeysetRow(keys *seal.Keys, master *seal.MasterKeys) (row keysetRow, err error) {
	row = keysetRow{PK: 1, Version: randomBytes(), DatabaseID: randomBytes()}
	row.Wrapped, err = keys.Wrap(master, master.PrimaryID(), row.DatabaseID)
	return row, err
}

// keyCache holds the data keys of a database in memory. It is safe for concurrent use.
type keyCache struct {
	database database.Database
	// path leads to the keyset file.
	path string
	// loaded is nil if the keys cannot be read.
	loaded atomic.Pointer[loadedKeys]
}

// loadedKeys are the data keys of a version of the keyset, and when they were read.
type loadedKeys struct {
	*seal.Keys
	version []byte
	// databaseID is the id of the database.
	databaseID []byte
	at         time.Time
}

// keysMaxAge is how long keys are used without reading the keyset file: what is sealed while the file is lost can never
// be opened after a restart.
const keysMaxAge = 5 * time.Second

// load reads the keys from the database and the keyset file. It returns ErrUnavailable.
//
// A migration changes the version of the keyset, and inserts with an older version store nothing. So the schema is
// checked once the version is read, and then no insert needs to check it.
func (c *keyCache) load(tx *gorm.DB) (*loadedKeys, error) {
	keys, err := c.read(tx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return keys, nil
}

// read is load with the errors of findKeyset, ErrNoKeyset and ErrKeysetUnusable.
func (c *keyCache) read(tx *gorm.DB) (*loadedKeys, error) {
	row, err := findKeyset(tx)
	if err == nil {
		err = c.database.CheckSchema(tx)
	}
	if err != nil {
		return nil, err
	}
	keys, _, err := row.open(c.path)
	if err != nil {
		c.loaded.Store(nil)
		return nil, err
	}
	loaded := &loadedKeys{keys, row.Version, row.DatabaseID, time.Now()}
	c.loaded.Store(loaded)
	return loaded, nil
}

// fresh is current, but reads the keys again after 5 seconds.
func (c *keyCache) fresh(ctx context.Context) (*loadedKeys, error) {
	if loaded := c.loaded.Load(); loaded != nil && time.Since(loaded.at) < keysMaxAge {
		return loaded, nil
	}
	return c.load(c.database.Reader().WithContext(ctx))
}

// current returns the keys in memory, which may be older than the keys in the database. It returns ErrUnavailable.
func (c *keyCache) current(tx *gorm.DB) (*loadedKeys, error) {
	if loaded := c.loaded.Load(); loaded != nil {
		return loaded, nil
	}
	return c.load(tx)
}

// latest returns the keys of the database as a transaction sees them. It returns ErrUnavailable.
func (c *keyCache) latest(tx *gorm.DB) (*loadedKeys, error) {
	var row keysetRow
	if err := tx.Select("version").Take(&row).Error; err != nil {
		return nil, fmt.Errorf("read the version of the keyset: %w", err)
	}
	if loaded := c.loaded.Load(); loaded != nil && bytes.Equal(loaded.version, row.Version) {
		return loaded, nil
	}
	return c.load(tx)
}
