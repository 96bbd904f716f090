package store

import (
	"context"
	"database/sql"
	"fmt"
)

// What comes to the log before it is copied into the database: the more, the more transactions have touched the same
// page, which is copied once. A log that begins anew is written faster than one that grows, which tells where creates
// come alone.
const (
	// logTransactions have 10 MiB of creates that come alone, and 60 MiB of those of 64 callers.
	logTransactions = 512
	// maxLogPages are 64 MiB.
	maxLogPages = 16 << 10
)

// copyPasses is how often the log is copied before the rest is left to the writer. Each pass takes as much shorter as
// less has come to the log during the one before.
const copyPasses = 2

// checkpointer copies the pages of the log into the database beside the writer, which otherwise would stand still for
// it. Only what has come to the log meanwhile, which is little, is left to the writer; with nothing left, SQLite begins
// the log anew.
type checkpointer struct {
	conn  *sql.Conn
	files *guard
	// transactions counts those since the log was last copied, and seen is how many pages it had then.
	transactions, seen int
	// copied is closed when the pages are copied; nil while none are being copied.
	copied chan struct{}
}

func newCheckpointer(ctx context.Context, pool *sql.DB, files *guard) (*checkpointer, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect the checkpointer: %w", classify(err))
	}
	return &checkpointer{conn: conn, files: files}, nil
}

// advance does what is due. The writer calls it after each transaction.
func (c *checkpointer) advance(ctx context.Context, writer *connection) {
	c.transactions++
	if c.copied == nil {
		if c.isDue(logPages(ctx, writer)) {
			c.copied = make(chan struct{})
			go c.copy(ctx)
		}
		return
	}
	select {
	case <-c.copied:
		copyLog(ctx, writer.conn)
		c.transactions, c.seen, c.copied = 0, logPages(ctx, writer), nil
	default:
	}
}

// isDue tells it of a log of so many pages. A log that could not begin anew, because somebody still reads it, is due
// again when as many pages have come to it.
func (c *checkpointer) isDue(pages int) bool {
	if pages < c.seen {
		c.seen = 0
	}
	return c.transactions >= logTransactions || pages-c.seen >= maxLogPages
}

func (c *checkpointer) copy(ctx context.Context) {
	defer close(c.copied)
	for range copyPasses {
		copyLog(ctx, c.conn)
		// SQLite leaves this to the pass that finds nothing new in the log, which is the writer's. It does it again, and so
		// learns of an error itself.
		_ = c.files.sync()
	}
}

// copyLog copies what it can without waiting for others. Where it fails, the log stays as it is, in which nothing is
// lost, and the next try is one interval later.
func copyLog(ctx context.Context, conn *sql.Conn) {
	_, _ = conn.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
}

// logPages is how many pages the log has; 0 where that cannot be learned.
func logPages(ctx context.Context, writer *connection) int {
	var busy, pages, copied int
	if err := writer.QueryRowContext(ctx, "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &pages, &copied); err != nil {
		return 0
	}
	return pages
}

// close waits for what is being copied and gives the connection back.
func (c *checkpointer) close() error {
	if c.copied != nil {
		<-c.copied
	}
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("close the checkpointer: %w", err)
	}
	return nil
}
