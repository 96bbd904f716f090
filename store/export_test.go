package store

import (
	"context"
	"errors"
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

// Settings reads a setting of SQLite from the very connection that commits creates, from one that commits other changes,
// and from one that reads.
func (s *Store) Settings(ctx context.Context, name string) (creates, changes, reads string, err error) {
	pragma := "PRAGMA " + name
	err = errors.Join(
		s.creates.connection.conn.QueryRowContext(ctx, pragma).Scan(&creates),
		s.writer.WithContext(ctx).Raw(pragma).Scan(&changes).Error,
		s.reader.WithContext(ctx).Raw(pragma).Scan(&reads).Error,
	)
	return creates, changes, reads, err
}

// AwaitReset calls work with growing numbers, at most so many times, until the WAL was reset, which follows a complete
// checkpoint. It tells whether it was.
func (s *Store) AwaitReset(limit int, work func(i int)) bool {
	before, err := s.files.look()
	for i := 0; err == nil && i < limit; i++ {
		work(i)
		var after walIndex
		if after, err = s.files.look(); after.salts != before.salts {
			return err == nil
		}
	}
	return false
}
