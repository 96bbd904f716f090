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

// QueryContext retries for up to transactTimeout until a server responds.
func (p readPool) QueryContext(ctx context.Context, query string, arguments ...any) (rows *sql.Rows, err error) {
	// A server that does not commit is avoided, and the read fails there. Otherwise the read is only slow.
	check := time.AfterFunc(slowRead, func() { _ = p.database.Check(context.WithoutCancel(ctx)) })
	defer check.Stop()
	retries, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	err = retry(retries, func() (again bool, err error) {
		rows, err = p.DB.QueryContext(ctx, query, arguments...) //nolint:sqlclosecheck,rowserrcheck // The caller does it.
		if err == nil || !isRetryable(err) {
			return false, err //nolint:wrapcheck // The dialector translates it.
		}
		p.database.reselectServer(ctx, err)
		return true, err //nolint:wrapcheck // The dialector translates it.
	})
	return rows, err
}
