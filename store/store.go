// Package store stores providers, applications and access tokens, commits waiting creates in one transaction (group
// commit), and records an audit trail. It knows neither HTTP nor an SQL dialect: store/sqlite and store/postgres
// implement the interfaces of store/database, and store/seal encrypts secrets.
//
// Start with create.go, and follow a create through batcher.go, commit.go, idempotency.go and insert.go. provider.go
// and settings.go define the records, and store.go opens a store. README.md walks through a create.
//
// A change is on disk when its method returns. Each method documents its errors; test them with errors.Is.
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
	// replica is nil if the database is not shared or the program does not serve.
	replica *replica
}

// Create returns a new Store for a server, over a database of the current schema, which may be new. Secrets are
// sealed with the keys in the file at keysetPath. If neither the file nor the database has a keyset, Create creates
// one, except for a shared database. The Store closes the database, even if Create fails.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, ErrUnavailable or an error of the file system.
func Create(ctx context.Context, db database.Database, keysetPath string) (*Store, error) {
	store := newStore(db)
	return store.closeOnError(store.create(ctx, keysetPath))
}

// Open is like Create, for a program other than a server, over a database that has a keyset.
//
// It returns database.ErrOlder if it has none, ErrNoKeyset, ErrKeysetUnusable or ErrUnavailable.
func Open(ctx context.Context, db database.Database, keysetPath string) (*Store, error) {
	store := newStore(db)
	return store.closeOnError(store.open(ctx, keysetPath))
}

func newStore(db database.Database) *Store {
	return &Store{database: db, tokens: tokenCache{tokens: map[string]cachedToken{}}}
}

func (s *Store) create(ctx context.Context, keysetPath string) (err error) {
	if s.keyring, err = openOrCreateKeyring(ctx, s.database, keysetPath); err != nil {
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

// closeOnError returns the store if err is nil, and otherwise closes it.
func (s *Store) closeOnError(err error) (*Store, error) {
	if err == nil {
		return s, nil
	}
	if s.replica != nil {
		s.replica.leave()
	}
	return nil, errors.Join(err, s.database.Close())
}

// Ready returns nil if creates can be stored, and otherwise ErrUnavailable.
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

// Close stores waiting creates, waits for running statements and closes the database. It returns ErrUnavailable if the
// database cannot be closed cleanly.
func (s *Store) Close() error {
	errs := []error{s.batcher.close()}
	if s.replica != nil {
		s.replica.leave()
	}
	return errors.Join(append(errs, s.database.Close())...)
}

func (s *Store) reader(ctx context.Context) *gorm.DB { return s.database.Reader().WithContext(ctx) }

// IsShared reports whether replicas can share the database. Each of them then needs a new key before it is used.
func (s *Store) IsShared() bool { return s.database.IsShared() }

// Stats are statistics of a store.
type Stats struct {
	// QueueLength is the number of creates waiting for their batch, and QueueCapacity its limit.
	QueueLength, QueueCapacity int
	// Database holds the statistics of the database.
	Database database.Stats
}

// Stats returns statistics of the store, without querying the database.
func (s *Store) Stats() Stats {
	queue := s.batcher.queue
	return Stats{QueueLength: len(queue), QueueCapacity: cap(queue), Database: s.database.Stats()}
}

// Watch makes the store call watch after each batch, committed or not, with the number of its creates and its duration.
// Calls can be concurrent. Creates wait for watch to return.
func (s *Store) Watch(watch func(creates int, took time.Duration)) { s.batcher.watcher.Store(&watch) }
