package store

import (
	"context"
	"runtime"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store/database"
)

// QueueLength is the maximum number of waiting creates.
const QueueLength = queueLength

// NewTokenText returns the text of a new token.
func NewTokenText() string { return newTokenText() }

// CachedTokens returns the number of tokens in the cache.
func (s *Store) CachedTokens() int {
	s.tokens.mutex.RLock()
	defer s.tokens.mutex.RUnlock()
	return len(s.tokens.tokens)
}

// OverBatches returns a store that uses only the batches of a database, which never run their statements.
func OverBatches(ctx context.Context, db database.Database) (*Store, error) {
	keys := &keyCache{}
	keys.loaded.Store(&loadedKeys{at: time.Now().Add(time.Hour)})
	batcher, err := startBatcher(ctx, db, keys)
	return &Store{database: db, batcher: batcher, keys: keys}, err
}

// AwaitQueue waits until length creates are queued.
func (s *Store) AwaitQueue(length int) {
	for len(s.batcher.queue) != length {
		runtime.Gosched()
	}
}

// Submission is a create in progress.
type Submission struct{ outcome chan error }

// Submit starts a create whose client_id is its name.
func (s *Store) Submit(ctx context.Context, name string) Submission {
	submission := Submission{outcome: make(chan error, 1)}
	c := newCreate(CreateRequest{Name: name},
		&OAuth2Settings{ClientID: name, PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}})
	go func() { submission.outcome <- s.batcher.submit(ctx, c) }()
	return submission
}

// Wait waits for the create and returns its error.
func (s Submission) Wait() error { return <-s.outcome }

// SetLeastTime makes batches keep the deadlines of creates, as those of a shared database do. No create may be in
// progress.
func (s *Store) SetLeastTime(least time.Duration) { s.batcher.leastTime = least }
