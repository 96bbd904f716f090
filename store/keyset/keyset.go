// Package keyset holds the keys of a database. The data keys, which seal secrets, are in the table keyset, encrypted by
// a master key in the keyset file.
//
// Start with Keys, which loads the data keys. Find and Create are about the row that holds them.
package keyset

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
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
)

// Keys are the keys of a database. They hold the data keys in memory, and are safe for concurrent use.
type Keys struct {
	database database.Database
	// path leads to the keyset file.
	path string
	// loaded is nil if the keys cannot be read.
	loaded atomic.Pointer[Loaded]
}

// New returns the keys of a database. The master keys in the file at path encrypt its data keys.
func New(db database.Database, path string) *Keys { return &Keys{database: db, path: path} }

// Loaded are the data keys of a version of the keyset, and when they were read.
type Loaded struct {
	*seal.Keys
	Version []byte
	// DatabaseID is the id of the database.
	DatabaseID []byte
	at         time.Time
}

// maxAge is how long keys serve without reading the keyset file: what is sealed while it is lost is lost at a restart.
const maxAge = 5 * time.Second

// Load reads the keys from the database and the keyset file. It returns ErrUnavailable.
//
// A migration changes the version of the keyset, and inserts with an older version store nothing. So the schema is
// checked once the version is read, and then no insert needs to check it.
func (k *Keys) Load(tx *gorm.DB) (*Loaded, error) {
	keys, err := k.Read(tx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", database.ErrUnavailable, err)
	}
	return keys, nil
}

// Read is Load with the errors of Find, seal.ErrNoKeyset and ErrKeysetUnusable.
func (k *Keys) Read(tx *gorm.DB) (*Loaded, error) {
	row, err := Find(tx)
	if err == nil {
		err = k.database.CheckSchema(tx)
	}
	if err != nil {
		return nil, err
	}
	keys, _, err := row.openWith(k.path)
	if err != nil {
		k.loaded.Store(nil)
		return nil, err
	}
	loaded := &Loaded{keys, row.Version, row.DatabaseID, time.Now()}
	k.loaded.Store(loaded)
	return loaded, nil
}

// Fresh is Current, but reads the keys again after 5 seconds.
func (k *Keys) Fresh(ctx context.Context) (*Loaded, error) {
	if loaded := k.loaded.Load(); loaded != nil && time.Since(loaded.at) < maxAge {
		return loaded, nil
	}
	return k.Load(k.database.Reader().WithContext(ctx))
}

// Current returns the keys in memory, which may be older than the keys in the database. It returns ErrUnavailable.
func (k *Keys) Current(tx *gorm.DB) (*Loaded, error) {
	if loaded := k.loaded.Load(); loaded != nil {
		return loaded, nil
	}
	return k.Load(tx)
}

// Latest returns the keys of the database as a transaction sees them. It returns ErrUnavailable.
func (k *Keys) Latest(tx *gorm.DB) (*Loaded, error) {
	var row Row
	if err := tx.Select("version").Take(&row).Error; err != nil {
		return nil, fmt.Errorf("read the version of the keyset: %w", err)
	}
	if loaded := k.loaded.Load(); loaded != nil && bytes.Equal(loaded.Version, row.Version) {
		return loaded, nil
	}
	return k.Load(tx)
}

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

// Find returns the keyset of a database. It returns database.ErrOlder if there is none, ErrCorrupt if it was lost.
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
// It returns database.ErrOlder if the database has no keyset, seal.ErrNoKeyset or ErrKeysetUnusable, or ErrUnavailable.
func Open(ctx context.Context, db database.Readable, path string) (*seal.Keys, error) {
	_, keys, _, err := openIn(db.Reader().WithContext(ctx), path)
	return keys, err
}

// openIn finds the keyset of a database, and decrypts the data keys with the master keys in the file at path.
func openIn(tx *gorm.DB, path string) (row Row, keys *seal.Keys, master *seal.MasterKeys, err error) {
	if row, err = Find(tx); err == nil {
		keys, master, err = row.openWith(path)
	}
	return row, keys, master, err
}

func (r Row) openWith(path string) (*seal.Keys, *seal.MasterKeys, error) {
	master, err := seal.ReadMasterKeys(path)
	if err != nil {
		return nil, nil, err
	}
	keys, err := r.Open(master, r.DatabaseID)
	return keys, master, database.Wrap(path, err)
}

// Create stores new data keys in a database that has none, which the primary master key in the file at path encrypts.
// It creates the file, unless the database is shared: replicas on several hosts would each create their own. If
// several programs do so, one wins.
func Create(ctx context.Context, db database.Database, path string) error {
	_, err := Find(db.Reader().WithContext(ctx))
	if !errors.Is(err, database.ErrOlder) {
		return err
	}
	read := seal.ReadOrCreateMasterKeys
	if db.IsShared() {
		read = seal.ReadMasterKeys
	}
	master, err := read(path)
	if err != nil {
		return err
	}
	keys, err := seal.NewKeys()
	if err != nil {
		return err
	}
	row, err := newRow(keys, master)
	if err != nil {
		return err
	}
	err = db.Write(ctx, func(tx *gorm.DB) error {
		inserted := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
		if inserted.Error != nil || inserted.RowsAffected == 0 {
			return inserted.Error
		}
		return event.Add(tx, event.Event{Event: event.KeyCreated, Subject: int64(keys.PrimaryID())})
	})
	return database.Wrap("create the keyset of the database", err)
}

// CopyOf returns the keyset for a copy of a database: the same data keys for another database id, encrypted by the
// primary master key in the file at path. It returns the errors of Open.
func CopyOf(source *gorm.DB, path string) (Row, error) {
	row, keys, master, err := openIn(source, path)
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
