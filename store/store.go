// Package store keeps providers, applications and access tokens in a database. It knows nothing of HTTP.
//
// A change that is reported as done is on disk. The errors that a function returns stand in its comment and are told
// apart with errors.Is.
package store

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// pageSize is how many rows are in memory at a time while a whole table is read.
const pageSize = 500

// Store keeps providers, applications and tokens in one database. It is safe for concurrent use.
type Store struct {
	database database.Database
	keyring  *seal.Keyring
	tokens   tokenCache
	batcher  *batcher
}

// Create begins to use a database of the current schema, which may be new. Secrets are sealed with the keys in the file
// at keysetPath, which is made where neither the file nor a keyset of the database is there. The Store closes the
// database, also where Create fails.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, ErrUnavailable or an error of the file system.
func Create(ctx context.Context, db database.Database, keysetPath string) (*Store, error) {
	return begin(ctx, db, keysetPath, provideKeyring)
}

// Open is Create for a database that has its keyset.
//
// It returns database.ErrOlder for one that has none, ErrNoKeyset, ErrKeysetUnusable or ErrUnavailable.
func Open(ctx context.Context, db database.Database, keysetPath string) (*Store, error) {
	return begin(ctx, db, keysetPath, openKeyring)
}

type keyringFunc func(ctx context.Context, db database.Database, path string) (*seal.Keyring, error)

func begin(ctx context.Context, db database.Database, keysetPath string, getKeyring keyringFunc) (*Store, error) {
	store := &Store{database: db, tokens: tokenCache{tokens: map[string]cachedToken{}}}
	var err error
	if store.keyring, err = getKeyring(ctx, db, keysetPath); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if store.batcher, err = startBatcher(ctx, db, store.keyring); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return store, nil
}

// Ready tells whether creates can be stored now. It returns ErrUnavailable.
func (s *Store) Ready(ctx context.Context) error {
	if _, err := s.keyring.Current(); err != nil {
		return errors.Join(ErrUnavailable, err)
	}
	if err := s.database.Check(ctx); err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	return nil
}

// Close stores the creates that wait, waits for running statements and releases the database. It returns ErrUnavailable
// where the database cannot be released in order.
func (s *Store) Close() error {
	return errors.Join(s.batcher.close(), s.database.Close())
}

func (s *Store) reader(ctx context.Context) *gorm.DB { return s.database.Reader().WithContext(ctx) }

// withApplications makes a query of providers load the applications that they are linked to.
func withApplications(db *gorm.DB) *gorm.DB {
	return db.Preload("Application").Preload("Backchannel.Application")
}
