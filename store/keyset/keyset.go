// Package keyset holds the keys of a database. The data keys, which seal secrets, are in the table keyset, encrypted by
// a master key in the keyset file.
//
// Start with Keys, which loads the data keys. Find and Create are about the row that holds them.
package keyset

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
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

// maxAge is how long keys are used without reading the keyset file: what is sealed while the file is lost can never
// be opened after a restart.
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

// Read is Load with the errors of Find, ErrNoKeyset and ErrKeysetUnusable.
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
