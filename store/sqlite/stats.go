package sqlite

import (
	"path/filepath"
	"sync/atomic"

	"example.com/providerd/store/database"
)

// checkpointCounts counts checkpoints since the database was opened.
type checkpointCounts struct{ done, failed atomic.Uint64 }

// Stats returns figures about the connections, and about the WAL according to the wal-index.
func (d *Database) Stats() database.Stats {
	stats := database.Stats{Readers: d.readers.Stats(), Writers: d.writers.Stats()}
	if index, err := d.files.Inspect(); err == nil {
		stats.WAL = &database.WALStats{
			Pages: index.Frames, CopiedPages: index.Backfilled,
			Checkpoints: d.checkpoints.done.Load(), FailedCheckpoints: d.checkpoints.failed.Load(),
		}
	}
	if free, err := freeBytes(filepath.Dir(d.file.Name())); err == nil {
		stats.FreeBytes = &free
	}
	return stats
}
