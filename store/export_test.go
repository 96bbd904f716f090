package store

import (
	"context"
	"runtime"
)

// QueueLength is how many creates may wait.
const QueueLength = queueLength

// AwaitQueue returns once this many creates wait for the writer.
func (s *Store) AwaitQueue(length int) {
	for len(s.creates.queue) != length {
		runtime.Gosched()
	}
}

// AwaitWriting returns once the writer has begun with a batch, or waits for the database to let it begin.
func (s *Store) AwaitWriting() error {
	pool, err := s.writer.DB()
	for err == nil && pool.Stats().InUse == 0 {
		runtime.Gosched()
	}
	return err
}

// Pragmas reads a setting from one connection of each pool, the writer's first.
func (s *Store) Pragmas(ctx context.Context, name string) (writer, reader string, err error) {
	if err = s.writer.WithContext(ctx).Raw("PRAGMA " + name).Scan(&writer).Error; err != nil {
		return
	}
	err = s.reader.WithContext(ctx).Raw("PRAGMA " + name).Scan(&reader).Error
	return
}
