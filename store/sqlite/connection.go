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

// connection is one connection to the database, whose statements are prepared once and for all. GORM's own cache
// prepares a statement in every transaction again.
type connection struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
}

var _ gorm.ConnPool = (*connection)(nil)

// PrepareContext prepares a statement for the caller alone.
func (c *connection) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return c.conn.PrepareContext(ctx, query)
}

// ExecContext carries out a statement, which it prepares the first time, except for a PRAGMA: it has its value in its
// text, so that each would be kept.
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

// QueryContext carries out a query, which it prepares the first time.
func (c *connection) QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error) {
	statement, err := c.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return statement.QueryContext(ctx, arguments...)
}

// QueryRowContext carries out a query of one row, which it prepares the first time.
func (c *connection) QueryRowContext(ctx context.Context, query string, arguments ...any) *sql.Row {
	statement, err := c.prepared(ctx, query)
	if err != nil {
		return c.conn.QueryRowContext(ctx, query, arguments...)
	}
	return statement.QueryRowContext(ctx, arguments...)
}

// prepared expects the few statements of batches: none is ever given up.
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

// transact runs statements in one transaction. When the outcome of the commit could not be learned, the error is
// ErrOutcomeUnknown; in any other error nothing was stored. A panic in the statements is such an error, because the
// callers of a batch are not to fall with each other.
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

// rollBack ends a transaction that failed. SQLite may have ended it already, which is as good.
func (c *connection) rollBack(ctx context.Context) { _, _ = c.ExecContext(ctx, "ROLLBACK") }

// configure leaves checkpoints to the checkpointer. A batch makes the rows of a provider together, so that no foreign
// key is left to be checked.
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
