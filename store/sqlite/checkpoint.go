package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"example.com/providerd/store/sqlite/guard"
)

// What comes to the WAL before a checkpoint: the more, the more transactions have touched the same page, which is
// copied once. A WAL that is reset is written faster than one that grows, which shows where creates come alone.
const (
	// walTransactions make 10 MiB of creates that come alone, and 60 MiB of those of 64 callers.
	walTransactions = 512
	// maxWALFrames are 64 MiB.
	maxWALFrames = 16 << 10
	// walSizeLimit is what SQLite cuts the file of the WAL to when it resets a longer one.
	walSizeLimit = 128 << 20
	// truncateFrames are how many frames, 256 MiB, make it worth to cut off the WAL at once.
	truncateFrames = 64 << 10
)

// retryPause is how long makeRoom does nothing after a checkpoint failed: it would copy the same frames again, up to
// the one that the database has no room for.
const retryPause = 30 * time.Second

// passes is how often the WAL is copied before the rest is left to the writer. Each pass takes as much shorter as less
// has come to the WAL during the one before.
const passes = 2

// checkpointer copies the frames of the WAL into the database beside the writer, which otherwise would stand still for
// it. Only what has come to the WAL meanwhile, which is little, is left to the writer; with nothing left, the next
// transaction resets the WAL.
type checkpointer struct {
	conn    *sql.Conn
	batches *connection
	files   *guard.Files
	logger  *slog.Logger
	counts  *checkpointCounts
	// transactions counts those since the last checkpoint, and left is how many frames the WAL had after it: many where
	// somebody reads an old state of the database, so that the WAL cannot be reset.
	transactions int
	left         uint32
	// copied is closed when the frames are copied; nil while none are being copied.
	copied chan struct{}
	// failed is when a checkpoint failed last.
	failed time.Time
}

func newCheckpointer(ctx context.Context, batches *connection, database *Database) (*checkpointer, error) {
	conn, err := database.writers.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect the checkpointer: %w", classify(err))
	}
	return &checkpointer{
		conn: conn, batches: batches, files: database.files, logger: database.logger, counts: &database.checkpoints,
	}, nil
}

// committed counts a transaction that left the WAL in this state, and does what is due.
func (c *checkpointer) committed(ctx context.Context, index guard.WALIndex) {
	c.transactions++
	if index.Frames < c.left {
		c.left = 0
	}
	c.advance(ctx, c.transactions >= walTransactions || index.Frames >= c.left+maxWALFrames)
}

// idle does what is due while no create comes: other programs may have written, or a reader may have let go of the WAL.
func (c *checkpointer) idle(ctx context.Context, index guard.WALIndex) {
	c.advance(ctx, index.Frames >= maxWALFrames)
}

// makeRoom copies all of the WAL at once after a batch failed, so that the next transaction starts again at its front:
// if only the WAL cannot grow, creates succeed again. They wait meanwhile, because without it they would fail.
func (c *checkpointer) makeRoom(ctx context.Context, index guard.WALIndex) {
	if index.Frames == index.Backfilled {
		return
	}
	if c.copied != nil {
		<-c.copied
	}
	if time.Since(c.failed) >= retryPause {
		c.end(ctx)
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
		c.end(ctx)
	default:
	}
}

// end ends the checkpoint whose frames are copied, or makes a short one of its own.
func (c *checkpointer) end(ctx context.Context) {
	c.copied = nil
	if err := c.finish(ctx); err != nil {
		c.fail(err)
		return
	}
	c.counts.done.Add(1)
}

func (c *checkpointer) copy(ctx context.Context) {
	defer close(c.copied)
	for range passes {
		err := c.checkpoint(ctx, c.conn, "PASSIVE")
		if err == nil {
			// SQLite leaves this to the pass that finds nothing new in the WAL, which is the writer's. It does it again, and so
			// learns of an error itself.
			err = c.files.Database().Sync()
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

func (c *checkpointer) fail(err error) {
	c.failed = time.Now()
	c.counts.failed.Add(1)
	c.logger.Error("checkpoint failed", slog.String("error", err.Error()))
}

// finish copies what has come meanwhile, while the writer adds nothing.
func (c *checkpointer) finish(ctx context.Context) error {
	c.transactions = 0
	index, err := c.files.Inspect()
	if err != nil {
		return err
	}
	if index.Frames < truncateFrames {
		err = c.checkpoint(ctx, c.batches.conn, "PASSIVE")
	} else {
		err = c.truncate(ctx)
	}
	if err != nil {
		return err
	}
	if index, err = c.files.Inspect(); err != nil {
		return err
	}
	grown := index.Frames >= c.left+maxWALFrames
	if c.left = index.Frames; grown && index.Frames > index.Backfilled {
		c.logger.Warn("WAL cannot be reset while another program reads an old snapshot",
			slog.Int64("bytes", int64(index.Frames)*index.PageSize), slog.String("path", c.files.Database().Name()+"-wal"))
	}
	return nil
}

// truncate is a checkpoint that also cuts off the WAL, unless somebody reads it.
func (c *checkpointer) truncate(ctx context.Context) error {
	if _, err := c.batches.conn.ExecContext(ctx, "PRAGMA busy_timeout = 0"); err != nil {
		return fmt.Errorf("truncate the WAL: %w", classify(err))
	}
	err := c.checkpoint(ctx, c.batches.conn, "TRUNCATE")
	_, resetErr := c.batches.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", busyTimeout.Milliseconds()))
	return errors.Join(err, classify(resetErr))
}

// checkpoint copies what can be copied without waiting for others. Where it fails, nothing is lost: the frames stay in
// the WAL.
func (c *checkpointer) checkpoint(ctx context.Context, conn *sql.Conn, mode string) error {
	// Copied into another file than that of the WAL, the frames would spoil it.
	if err := c.files.Check(); err != nil {
		return err
	}
	var busy, frames, copied int
	err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&busy, &frames, &copied)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", classify(err))
	}
	return nil
}

// close waits for what is being copied and gives the connection back.
func (c *checkpointer) close() error {
	if c.copied != nil {
		<-c.copied
	}
	if err := c.conn.Close(); err != nil && !errors.Is(err, sql.ErrConnDone) {
		return fmt.Errorf("close the checkpointer: %w", err)
	}
	return nil
}
