package store

import (
	"context"
	"runtime"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// QueueLength is how many creates may wait.
const QueueLength = queueLength

// NewTokenText makes the text of a token.
func NewTokenText() string { return newTokenText() }

// CachedTokens is how many tokens are in memory.
func (s *Store) CachedTokens() int {
	s.tokens.mutex.RLock()
	defer s.tokens.mutex.RUnlock()
	return len(s.tokens.tokens)
}

// OverBatches returns a store over a database of which it only uses the batches.
func OverBatches(ctx context.Context, db database.Database, keyring *seal.Keyring) (*Store, error) {
	store := newStore(db)
	store.keyring = keyring
	var err error
	store.batcher, err = startBatcher(ctx, db, fileKeys{keyring})
	return store, err
}

// AwaitQueue returns once this many creates wait for the batcher.
func (s *Store) AwaitQueue(length int) {
	for len(s.batcher.queue) != length {
		runtime.Gosched()
	}
}

// Submission is a create that is under way.
type Submission struct{ outcome chan error }

// Submit begins with a create whose name and client_id are the same.
func (s *Store) Submit(ctx context.Context, name string) Submission {
	submission := Submission{outcome: make(chan error, 1)}
	one := newCreate(CreateRequest{Name: name},
		&OAuth2Settings{ClientID: name, PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}})
	go func() { submission.outcome <- s.batcher.submit(ctx, one) }()
	return submission
}

// Wait returns the error of the create.
func (s Submission) Wait() error { return <-s.outcome }

// SetLeastTime makes batches heed the deadlines of creates, as those of a shared database do. No create may be under
// way.
func (s *Store) SetLeastTime(least time.Duration) { s.batcher.leastTime = least }
