package postgres

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"
)

// slowRead is how long a read may take before its server is asked whether it commits.
const slowRead = time.Second

// readPool runs statements that read, again where their server has failed: on whatever server has become the primary.
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

// QueryContext waits up to transactTimeout for a server that answers.
func (p readPool) QueryContext(ctx context.Context, query string, arguments ...any) (rows *sql.Rows, err error) {
	// Where the server does not commit, it is passed over, and what is read there fails. Where it does, the read is slow.
	check := time.AfterFunc(slowRead, func() { _ = p.database.Check(context.WithoutCancel(ctx)) })
	defer check.Stop()
	retries, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	err = retry(retries, func() (again bool, err error) {
		rows, err = p.DB.QueryContext(ctx, query, arguments...) //nolint:sqlclosecheck,rowserrcheck // Who reads them does it.
		if err == nil || !isRetryable(err) {
			return false, err //nolint:wrapcheck // The dialector translates it.
		}
		p.database.reselectServer(ctx, err)
		return true, err //nolint:wrapcheck // The dialector translates it.
	})
	return rows, err
}
