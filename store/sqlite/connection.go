//nolint:wrapcheck,sqlclosecheck // GORM translates the driver's own errors; statements are closed with the connection.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"gorm.io/gorm"
)

// connection is a database connection that prepares each statement once. GORM's cache would prepare it again in every
// transaction.
type connection struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
}

var _ gorm.ConnPool = (*connection)(nil)

// PrepareContext prepares a statement that the caller closes.
func (c *connection) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return c.conn.PrepareContext(ctx, query)
}

// ExecContext executes a statement, prepared on first use. It does not cache a PRAGMA, whose text includes its value.
func (c *connection) ExecContext(ctx context.Context, query string, arguments ...any) (sql.Result, error) {
	if strings.HasPrefix(query, "PRAGMA ") {
		return c.conn.ExecContext(ctx, query, arguments...)
	}
	statement, err := c.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.ExecContext(ctx, arguments...)
}

// QueryContext executes a query, prepared on first use.
func (c *connection) QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error) {
	statement, err := c.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, arguments...)
}

// QueryRowContext executes a query for one row, prepared on first use.
func (c *connection) QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row {
	statement, err := c.prepared(ctx, query)
	if err != nil {
		return c.conn.QueryRowContext(ctx, query, arguments...)
	}
	return statement.QueryRowContext(ctx, arguments...)
}

// prepared returns the cached statement. Batches use few, so none is ever evicted.
func (c *connection) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if statement, ok := c.statements[query]; ok {
		return statement, nil
	}
	statement, err := c.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	c.statements[query] = statement
	return statement, nil
}

// transact runs statements in one transaction. The error is ErrOutcomeUnknown if the commit may have taken place; after
// any other error nothing was stored. A panic in statements becomes an error too, so that one caller's panic does not
// fail the others of the batch.
func (c *connection) transact(ctx context.Context, statements func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			c.rollBack(ctx)
			err = fmt.Errorf("panic in a transaction: %v\n%s", value, debug.Stack())
		}
	}()
	if _, err := c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return classify(err)
	}
	if err := statements(); err != nil {
		c.rollBack(ctx)
		return classify(err)
	}
	_, err = c.ExecContext(ctx, "COMMIT")
	if err != nil {
		c.rollBack(ctx)
	}
	return commitError(err)
}

// rollBack ends a failed transaction. SQLite may have rolled it back already.
func (c *connection) rollBack(ctx context.Context) { _, _ = c.ExecContext(ctx, "ROLLBACK") }

// configure leaves checkpoints to the checkpointer. It turns off foreign keys, because a batch inserts the rows of a
// provider together and needs no check of them.
func (c *connection) configure(ctx context.Context) error {
	_, err := c.conn.ExecContext(ctx, fmt.Sprintf(
		"PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = %d; PRAGMA foreign_keys = off", walSizeLimit))
	return err
}

func (c *connection) close() error {
	var errs []error
	for _, statement := range c.statements {
		errs = append(errs, statement.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}
