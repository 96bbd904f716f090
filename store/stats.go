package store

import (
	"time"

	"example.com/providerd/store/database"
)

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
