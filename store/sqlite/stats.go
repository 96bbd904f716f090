package sqlite

import (
	"database/sql"
	"sync/atomic"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// checkpointCounts counts the checkpoints since the database was opened.
type checkpointCounts struct{ done, failed atomic.Uint64 }

// Stats returns figures of the connections, and of the WAL as it stands in the wal-index.
func (d *Database) Stats() database.Stats {
	stats := database.Stats{Readers: poolStats(d.readers), Writers: poolStats(d.writers)}
	if index, err := d.files.look(); err == nil {
		stats.WAL = &database.WALStats{
			Pages: index.frames, CopiedPages: index.backfilled,
			Checkpoints: d.checkpoints.done.Load(), FailedCheckpoints: d.checkpoints.failed.Load(),
		}
	}
	return stats
}

func poolStats(db *gorm.DB) sql.DBStats {
	pool, err := db.DB()
	if err != nil {
		return sql.DBStats{}
	}
	return pool.Stats()
}
