// Package store stores providers, applications and access tokens, commits waiting creates in one transaction (group
// commit), and logs events. It knows neither HTTP nor an SQL dialect: store/sqlite and store/postgres implement the
// interfaces of store/database, and store/seal encrypts secrets.
//
// Start with create.go, and follow a create through batch.go and insert.go. Package records defines the records, and
// store.go opens a store. README.md walks through a create.
//
// A change is on disk when its method returns. Each method documents its errors; test them with errors.Is.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"

	"example.com/providerd/store/application"
	"example.com/providerd/store/audit"
	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/token"
)

// Store is what one database keeps. It is safe for concurrent use.
type Store struct {
	// ID is the id of the database's digest key. A copy of the database has the same.
	ID uint32

	Providers    *Providers
	Applications *application.Applications
	Tokens       *token.Tokens
	Events       *event.Events
	Log          *audit.Log
	Keys         *keyset.Keys

	database database.Database
}

// Providers are the providers of a database.
type Providers struct {
	Reader
	batcher *batcher
	// normalizing makes comparisons that normalize records take turns, because the most expensive takes 47 MB.
	normalizing *semaphore.Weighted
}

// Create returns a new Store for a server, over a database of the current schema, which may be new. The master keys in
// the file at keysetPath encrypt the data keys of the database. If the database has none, Create creates them and,
// unless the database is shared, the file. The Store closes the database, even if Create fails.
//
// It returns seal.ErrNoKeyset or ErrKeysetUnusable, ErrUnavailable or an error of the file system.
func Create(ctx context.Context, db database.Database, keysetPath string) (*Store, error) {
	err := keyset.Create(ctx, db, keysetPath)
	if err == nil {
		err = db.Prepare(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return Open(ctx, db, keysetPath)
}

// Open is like Create, over a database that has a keyset.
//
// It returns database.ErrOlder if it has none, seal.ErrNoKeyset or ErrKeysetUnusable, or ErrUnavailable.
func Open(ctx context.Context, db database.Database, keysetPath string) (*Store, error) {
	keys := keyset.New(db, keysetPath)
	loaded, err := keys.Read(db.Reader().WithContext(ctx))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{
		ID: loaded.DigestKeyID(),
		Providers: &Providers{
			Reader: Reader{database: db, keys: keys}, batcher: startBatcher(db, keys), normalizing: semaphore.NewWeighted(1),
		},
		Applications: application.New(db), Tokens: token.New(db), Events: event.New(db),
		Log: audit.New(db, keys, loaded), Keys: keys, database: db,
	}, nil
}

// Ready returns nil if creates can be stored, and otherwise ErrUnavailable. From then on, creates are refused as long
// as the keyset file cannot be used.
func (s *Store) Ready(ctx context.Context) error {
	if err := s.database.Check(ctx); err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	_, err := s.Keys.Load(s.database.Reader().WithContext(ctx))
	return err
}

// Close stores waiting creates and closes the database. It returns ErrUnavailable if that cannot be done cleanly.
func (s *Store) Close() error {
	s.Providers.batcher.close()
	return s.database.Close()
}

// Stats are statistics of a store.
type Stats struct {
	// QueueLength is the number of creates waiting for their batch, and QueueCapacity its limit.
	QueueLength, QueueCapacity int
	// Database holds the statistics of the database.
	Database database.Stats
}

// Stats returns statistics of the store, without querying the database.
func (s *Store) Stats() Stats {
	queue := s.Providers.batcher.queue
	return Stats{QueueLength: len(queue), QueueCapacity: queueLength, Database: s.database.Stats()}
}

// Watch makes the store call watch after each batch, committed or not, with the number of its creates and its duration.
// Calls can be concurrent. Most creates wait for watch to return.
func (s *Store) Watch(watch func(creates int, took time.Duration)) {
	s.Providers.batcher.watcher.Store(&watch)
}
