package postgres

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"
)

// slowRead is how long a read may take before its server is checked.
const slowRead = time.Second

// readPool runs reading statements. If their server fails, it runs them again on the new primary.
type readPool struct {
	*sql.DB
	database *Database
}

var (
	_ gorm.ConnPool       = readPool{}
	_ gorm.GetDBConnector = readPool{}
)

// GetDBConn returns the pool.
func (p readPool) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// QueryContext retries for up to transactTimeout until a server responds. A read that takes long ends if its server
// does not commit, or was avoided since; otherwise it is only slow.
func (p readPool) QueryContext(ctx context.Context, query string, arguments ...any) (rows *sql.Rows, err error) {
	d := p.database
	retries, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	err = retry(retries, func() (again bool, err error) {
		avoided := d.servers.avoided.Load()
		// The rows need the context until the caller has read them.
		attempt, end := context.WithCancel(ctx)
		check := time.AfterFunc(slowRead, func() {
			if d.Check(ctx) != nil || d.servers.avoided.Load() != avoided {
				end()
			}
		})
		defer check.Stop()
		rows, err = p.DB.QueryContext(attempt, query, arguments...) //nolint:sqlclosecheck,rowserrcheck // The caller does it.
		again = isRetryable(err) || attempt.Err() != nil && ctx.Err() == nil
		return err != nil && again, err //nolint:wrapcheck // The dialector translates it.
	})
	return rows, err
}
