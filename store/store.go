// Package store keeps providers, applications and access tokens in a database, commits the creates that wait in one
// transaction, and records what was done. It knows nothing of HTTP and no SQL dialect: a package below opens the
// database (store/sqlite, store/postgres) behind the seam of store/database, and store/seal has the keys.
//
// Start with create.go, and follow a create through batcher.go, commit.go, idempotency.go and insert.go. provider.go
// and settings.go have the records, and store.go opens everything. README.md walks through all of it.
//
// A change that is reported as done is on disk. The errors that a function returns stand in its comment and are told
// apart with errors.Is.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// Store keeps providers, applications and tokens in one database. It is safe for concurrent use.
type Store struct {
	database database.Database
	keyring  *seal.Keyring
	tokens   tokenCache
	batcher  *batcher
	// replica is nil for a database that is not shared, and for a program that creates no providers.
	replica *replica
}

// Create begins to use a database of the current schema, which may be new, for a server. Secrets are sealed with the
// keys in the file at keysetPath. Where neither the file nor a keyset of the database is there, it is made, but for a
// database that replicas share. The Store closes the database, also where Create fails.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, ErrUnavailable or an error of the file system.
func Create(ctx context.Context, db database.Database, keysetPath string) (*Store, error) {
	store := newStore(db)
	return store.closeOnError(store.create(ctx, keysetPath))
}

// Open is Create for a program that works on a database that has its keyset.
//
// It returns database.ErrOlder for one that has none, ErrNoKeyset, ErrKeysetUnusable or ErrUnavailable.
func Open(ctx context.Context, db database.Database, keysetPath string) (*Store, error) {
	store := newStore(db)
	return store.closeOnError(store.open(ctx, keysetPath))
}

func newStore(db database.Database) *Store {
	return &Store{database: db, tokens: tokenCache{tokens: map[string]cachedToken{}}}
}

func (s *Store) create(ctx context.Context, keysetPath string) (err error) {
	if s.keyring, err = provideKeyring(ctx, s.database, keysetPath); err != nil {
		return err
	}
	var keys keySource = fileKeys{s.keyring}
	if s.IsShared() {
		if s.replica, err = joinReplicas(ctx, s.database, s.keyring); err != nil {
			return err
		}
		keys = s.replica
	}
	s.batcher, err = startBatcher(ctx, s.database, keys)
	return err
}

func (s *Store) open(ctx context.Context, keysetPath string) (err error) {
	if s.keyring, err = openKeyring(ctx, s.database, keysetPath); err != nil {
		return err
	}
	s.batcher, err = startBatcher(ctx, s.database, fileKeys{s.keyring})
	return err
}

// closeOnError returns the store where there is no error, and closes it otherwise.
func (s *Store) closeOnError(err error) (*Store, error) {
	if err == nil {
		return s, nil
	}
	if s.replica != nil {
		s.replica.leave()
	}
	return nil, errors.Join(err, s.database.Close())
}

// Ready tells whether creates can be stored now. It returns ErrUnavailable.
func (s *Store) Ready(ctx context.Context) error {
	if _, err := s.keyring.Current(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := s.database.Check(ctx); err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	if s.replica != nil {
		return s.replica.ready()
	}
	return nil
}

// Close stores the creates that wait, waits for running statements and releases the database. It returns ErrUnavailable
// where the database cannot be released in order.
func (s *Store) Close() error {
	errs := []error{s.batcher.close()}
	if s.replica != nil {
		s.replica.leave()
	}
	return errors.Join(append(errs, s.database.Close())...)
}

func (s *Store) reader(ctx context.Context) *gorm.DB { return s.database.Reader().WithContext(ctx) }

// IsShared tells whether other replicas use the database at the same time. A new key is then first to be brought to
// each of them.
func (s *Store) IsShared() bool { return s.database.IsShared() }

// Stats are figures of a store at one moment.
type Stats struct {
	// QueueLength is how many creates wait for their batch, and QueueCapacity how many may.
	QueueLength, QueueCapacity int
	// Database are those of the database under it.
	Database database.Stats
}

// Stats returns figures for whoever watches the store. It asks no server.
func (s *Store) Stats() Stats {
	queue := s.batcher.queue
	return Stats{QueueLength: len(queue), QueueCapacity: cap(queue), Database: s.database.Stats()}
}

// Watch lets a function know of each batch from now on, before the callers do: how many creates shared it, and how long
// it took, whether it was committed or not. Several may be told of at a time, and all creates wait for the function.
func (s *Store) Watch(watch func(creates int, took time.Duration)) { s.batcher.watcher.Store(&watch) }
