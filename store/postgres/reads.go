package postgres

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5"
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
	retries, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	err = retry(retries, func() (again bool, err error) {
		rows, err = p.query(ctx, query, arguments) //nolint:sqlclosecheck,rowserrcheck // The caller does it.
		return err != nil && isRetryable(err), err
	})
	return rows, err
}

// query is QueryContext without retries.
func (p readPool) query(ctx context.Context, query string, arguments []any) (*sql.Rows, error) {
	servers := &p.database.servers
	avoided := servers.avoided.Load()
	conn, err := p.Conn(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // The dialector translates it.
	}
	// It waits until the caller has read the rows.
	defer func() { go func() { _ = conn.Close() }() }()
	var used *link
	err = raw(conn, func(conn *pgx.Conn) error {
		used = linkOf(conn.PgConn())
		return nil
	})
	if err != nil {
		return nil, err
	}
	check := time.AfterFunc(slowRead, func() {
		if p.database.Check(context.WithoutCancel(ctx)) != nil || servers.avoided.Load() != avoided {
			used.end()
		}
	})
	defer check.Stop()
	//nolint:wrapcheck,sqlclosecheck // The dialector translates the error; the caller closes the rows.
	return conn.QueryContext(ctx, query, arguments...)
}
