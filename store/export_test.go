package store

import (
	"context"
	"runtime"

	"github.com/google/uuid"
)

// QueueLength is how many creates may wait.
const QueueLength = queueLength

// AwaitQueue returns once this many creates wait for the writer.
func (s *Store) AwaitQueue(length int) {
	for len(s.creates.queue) != length {
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

// SubmitNothing begins with a create without settings, over which the writer panics.
func (s *Store) SubmitNothing(ctx context.Context) Submission {
	return s.submit(ctx, "nothing", nil)
}

func (s *Store) submit(ctx context.Context, name string, settings *OAuth2Settings) Submission {
	submission := Submission{
		one:     newCreate(KindOAuth2, Creation{Name: name}, settings),
		outcome: make(chan error, 1),
	}
	go func() { submission.outcome <- s.creates.submit(ctx, submission.one) }()
	return submission
}

// AwaitTaken returns once the writer has begun with the create, or its caller has given up.
func (s Submission) AwaitTaken() {
	for !s.one.taken.Load() {
		runtime.Gosched()
	}
}

// Wait returns the error of the create.
func (s Submission) Wait() error { return <-s.outcome }

// Pragmas reads a setting from one connection of each pool, the writer's first.
func (s *Store) Pragmas(ctx context.Context, name string) (writer, reader string, err error) {
	if err = s.writer.WithContext(ctx).Raw("PRAGMA " + name).Scan(&writer).Error; err != nil {
		return
	}
	err = s.reader.WithContext(ctx).Raw("PRAGMA " + name).Scan(&reader).Error
	return
}
