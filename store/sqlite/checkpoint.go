package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite/connection"
	"example.com/providerd/store/sqlite/guard"
)

// The WAL grows this far before a checkpoint. The longer it grows, the more transactions have changed the same page,
// which is then copied only once. Overwriting a WAL that was reset is faster than appending to one that grows; this
// matters to creates that are committed alone.
const (
	// walTransactions write 10 MiB if each is a single create, and 60 MiB with 64 callers.
	walTransactions = 512
	// maxWALFrames is 64 MiB.
	maxWALFrames = 16 << 10
	// walSizeLimit is the size to which SQLite truncates a longer WAL file when it resets it.
	walSizeLimit = 128 << 20
)

// makeRoom runs no checkpoint for retryPause after a failed one, because it would copy the same frames again.
const retryPause = 30 * time.Second

// passes is how often frames are copied before the rest is left to the writer. Each pass is shorter than the last,
// because fewer frames were appended during the previous one.
const passes = 2

// checkpointer copies frames from the WAL into the database while the writer runs, which would otherwise stall. The
// writer copies only the last few. Once all are copied, the next transaction resets the WAL.
type checkpointer struct {
	conn *sql.Conn
	// writer is the connection that inserts.
	writer   *sql.Conn
	database *Database
	// transactions is the number of commits since the last checkpoint.
	transactions int
	// remaining is the number of frames left in the WAL by the last checkpoint, many if a reader keeps an old snapshot.
	remaining uint32
	// copied is closed when the concurrent passes complete; nil if none are running.
	copied chan struct{}
	// failedAt is when a checkpoint last failed.
	failedAt time.Time
}

func newCheckpointer(ctx context.Context, writer *sql.Conn, database *Database) (*checkpointer, error) {
	conn, err := database.writers.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect the checkpointer: %w", connection.Classify(err))
	}
	return &checkpointer{conn: conn, writer: writer, database: database}, nil
}

// committed counts a transaction that left the WAL in this state, and runs the checkpoint that is due, if any.
func (c *checkpointer) committed(ctx context.Context, index guard.WALIndex) {
	c.transactions++
	if index.Frames < c.remaining {
		c.remaining = 0
	}
	c.advance(ctx, c.transactions >= walTransactions || index.Frames >= c.remaining+maxWALFrames)
}

// idle runs a due checkpoint while no creates arrive: others may have written, or a reader released the WAL.
func (c *checkpointer) idle(ctx context.Context, index guard.WALIndex) {
	c.advance(ctx, index.Frames >= maxWALFrames)
}

// makeRoom copies all of the WAL in one pass after a failed batch, so that the next transaction overwrites it from the
// start. Creates then work again if only the WAL could not grow. They wait for it, because they would fail otherwise.
func (c *checkpointer) makeRoom(ctx context.Context, index guard.WALIndex) {
	if index.Frames == index.Backfilled {
		return
	}
	if c.copied != nil {
		<-c.copied
	}
	if time.Since(c.failedAt) >= retryPause {
		c.complete(ctx)
	}
}

func (c *checkpointer) advance(ctx context.Context, isDue bool) {
	if c.copied == nil {
		if isDue {
			c.copied = make(chan struct{})
			go c.copy(ctx)
		}
		return
	}
	select {
	case <-c.copied:
		c.complete(ctx)
	default:
	}
}

// complete copies the frames that the concurrent passes left, or all frames if there were no passes.
func (c *checkpointer) complete(ctx context.Context) {
	c.copied = nil
	if err := c.copyRest(ctx); err != nil {
		c.fail(err)
		return
	}
	c.database.checkpoints.done.Add(1)
}

func (c *checkpointer) copy(ctx context.Context) {
	defer close(c.copied)
	for range passes {
		err := c.checkpoint(ctx, c.conn)
		if err == nil {
			// SQLite syncs the database only after a pass that leaves no frames, which is the writer's. Syncing here leaves that
			// pass little to wait for; it syncs again and so notices an error itself.
			err = c.database.file.Sync()
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

func (c *checkpointer) fail(err error) {
	c.failedAt = time.Now()
	c.database.checkpoints.failed.Add(1)
	c.database.logger.Error("checkpoint failed", slog.String("error", err.Error()))
}

// copyRest copies the frames appended since, while the writer waits.
func (c *checkpointer) copyRest(ctx context.Context) error {
	c.transactions = 0
	if err := c.checkpoint(ctx, c.writer); err != nil {
		return err
	}
	index, err := c.database.files.Inspect()
	if err != nil {
		return err
	}
	grown := index.Frames >= c.remaining+maxWALFrames
	if c.remaining = index.Frames; grown && index.Frames > index.Backfilled {
		c.database.logger.Warn("WAL cannot be reset while another program reads an old snapshot",
			slog.Int64("bytes", int64(index.Frames)*index.PageSize), slog.String("path", c.database.file.Name()+"-wal"))
	}
	return nil
}

// checkpoint copies what it can without waiting for others. If it fails, the frames stay in the WAL.
func (c *checkpointer) checkpoint(ctx context.Context, conn *sql.Conn) error {
	// If the database file was replaced, copying frames into it would corrupt it.
	if err := c.database.files.Check(); err != nil {
		return err
	}
	_, err := connection.CopyWAL(ctx, conn, "PASSIVE")
	return err
}

// close waits for a running copy and closes the connection.
func (c *checkpointer) close() error {
	if c.copied != nil {
		<-c.copied
	}
	if err := c.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return fmt.Errorf("close the checkpointer: %w", err)
	}
	return nil
}

// Stats returns figures about the connections, and about the WAL according to the wal-index.
func (d *Database) Stats() database.Stats {
	waited := time.Duration(d.locks.total.Load())
	stats := database.Stats{
		Readers: d.readers.Stats(), Writers: d.writers.Stats(), LockWait: &waited, IsContended: d.locks.isContended(),
	}
	if index, err := d.files.Inspect(); err == nil {
		stats.WAL = &database.WALStats{
			Pages: index.Frames, CopiedPages: index.Backfilled,
			Checkpoints: d.checkpoints.done.Load(), FailedCheckpoints: d.checkpoints.failed.Load(),
		}
	}
	if free, err := connection.FreeBytes(filepath.Dir(d.file.Name())); err == nil {
		stats.FreeBytes = &free
	}
	return stats
}
