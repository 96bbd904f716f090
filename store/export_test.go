package store

import (
	"context"
	"runtime"

	"github.com/google/uuid"
)

// QueueLength is how many creates may wait.
const QueueLength = queueLength

// AwaitQueue returns once this many creates wait for the batcher.
func (s *Store) AwaitQueue(length int) {
	for len(s.batcher.queue) != length {
		runtime.Gosched()
	}
}

// Submission is a create that is under way.
type Submission struct {
	one     *create
	outcome chan error
}

// Submit begins with a create whose name and client_id are the same.
func (s *Store) Submit(ctx context.Context, name string) Submission {
	return s.submit(ctx, name,
		&OAuth2Settings{ClientID: name, PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}})
}

// SubmitNothing begins with a create without settings, over which the batcher panics.
func (s *Store) SubmitNothing(ctx context.Context) Submission {
	return s.submit(ctx, "nothing", nil)
}

func (s *Store) submit(ctx context.Context, name string, settings *OAuth2Settings) Submission {
	submission := Submission{
		one:     newCreate(CreateRequest{Name: name}, settings),
		outcome: make(chan error, 1),
	}
	go func() { submission.outcome <- s.batcher.submit(ctx, submission.one) }()
	return submission
}

// AwaitClaimed returns once the batcher has begun with the create, or its caller has given up.
func (s Submission) AwaitClaimed() {
	for !s.one.claimed.Load() {
		runtime.Gosched()
	}
}

// Wait returns the error of the create.
func (s Submission) Wait() error { return <-s.outcome }
