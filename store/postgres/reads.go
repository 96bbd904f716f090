package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres/link"
)

const (
	// slowRead is how long a read may take before its server is checked.
	slowRead = time.Second
	// settleInterval is the time between two checks for open transactions.
	settleInterval = 50 * time.Millisecond
	// longTransaction is how long a transaction can be open before that is reported.
	longTransaction = 10 * time.Second
)

// readPool runs reading statements. If their server fails, it runs them again on the new primary.
type readPool struct {
	*sql.DB
	database *Database
}

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
	conn, native, err := connect(ctx, p.DB)
	if err != nil {
		return nil, err
	}
	// It waits until the caller has closed the rows, which keep a connection until then in any case.
	defer func() { go func() { _ = conn.Close() }() }()
	used := link.Of(native.PgConn().Conn())
	var ended sync.Mutex // Held once the query has ended, after which the connection may serve another one.
	check := time.AfterFunc(slowRead, func() {
		isLost := p.database.Check(context.WithoutCancel(ctx)) != nil || p.database.servers.IsStale(used)
		if isLost && ended.TryLock() {
			used.End()
			ended.Unlock()
		}
	})
	defer ended.Lock()
	defer check.Stop()
	//nolint:wrapcheck,sqlclosecheck // The dialector translates the error; the caller closes the rows.
	return conn.QueryContext(ctx, query, arguments...)
}

const selectTaken = `SELECT EXISTS (SELECT FROM providers WHERE created_by = $1 AND kind = $2 AND idempotency_key = $3),
	EXISTS (SELECT FROM providers WHERE client_id = $4)`

// SeesKey sends one statement. If it fails before its caller gives up, the server must prove that it commits, so that
// no insert is sent to one that does not respond.
func (d *Database) SeesKey(ctx context.Context, createdBy, kind, key string) bool {
	limited, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	values := database.Unique{CreatedBy: createdBy, Kind: kind, IdempotencyKey: key}
	taken, _, err := d.find(limited, d.readers, (*transaction).exchange, values)
	if err != nil && ctx.Err() == nil {
		d.mustProve.Store(true)
	}
	return taken.IdempotencyKey
}

// Find searches in a transaction whose COMMIT waits for the standbys, so that what was found is not lost.
func (d *Database) Find(ctx context.Context, values database.Unique) (taken database.Taken, err error) {
	limited, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	err = retry(limited, func() (again bool, err error) {
		taken, again, err = d.find(limited, d.writers, (*transaction).probe, values)
		return again, err
	})
	if err == nil && !taken.IdempotencyKey {
		err = d.Check(ctx)
	}
	return taken, err
}

// find sends selectTaken, and reports whether another attempt may succeed.
func (d *Database) find(
	ctx context.Context, pool database.Pool,
	send func(*transaction, context.Context, ...statement) ([]*pgconn.Result, error), values database.Unique,
) (taken database.Taken, again bool, err error) {
	tx, err := d.connection(ctx, pool)
	if err != nil {
		return taken, !errors.Is(err, database.ErrNewer), err
	}
	results, err := send(tx, ctx, statement{selectTaken, [][]byte{
		[]byte(values.CreatedBy), []byte(values.Kind), []byte(values.IdempotencyKey), []byte(values.ClientID),
	}})
	if err != nil {
		d.fail(ctx, tx, err)
		return taken, isRetryable(err), err
	}
	tx.release()
	row := results[0].Rows[0]
	return database.Taken{IdempotencyKey: string(row[0]) == "t", ClientID: string(row[1]) == "t"}, false, nil
}

// CheckUnserved returns database.ErrInUse if a server has a connection to the database, or ErrUnavailable. A server
// without requests has none. Behind a pooler, one that has stopped may seem to have one.
func (d *Database) CheckUnserved(ctx context.Context) error {
	const query = `SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = ?)`
	var isServed bool
	if err := d.Reader().WithContext(ctx).Raw(query, link.ServerName).Scan(&isServed).Error; err != nil {
		return fmt.Errorf("find connections of servers: %w", err)
	}
	if isServed {
		return fmt.Errorf("%w: a server is connected to it; stop the server, or pass --live", database.ErrInUse)
	}
	return nil
}

// Snapshot runs statements in a read-only transaction, during which the server cannot vacuum rows visible to it.
func (d *Database) Snapshot(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return classify(d.Reader().WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		const withoutTimeouts = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
		if err := tx.Exec(withoutTimeouts).Error; err != nil {
			return fmt.Errorf("begin: %w", unavailable(err))
		}
		return statements(tx)
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}))
}

// Load runs statements in one transaction, without waiting for other changes.
func (d *Database) Load(ctx context.Context, statements func(tx *gorm.DB) error) error {
	_, err := d.try(ctx, terms{beginStatement, 24 * time.Hour, time.Minute}, func(tx *gorm.DB) error {
		err := statements(tx)
		for isBehind := true; isBehind && err == nil; {
			isBehind, err = d.advance(tx)
		}
		return err
	})
	return err
}

const selectInstance = "extract(epoch FROM pg_postmaster_start_time())::text"

// Instance returns when the server started, which no other server shares.
func (d *Database) Instance(tx *gorm.DB) (start string, err error) {
	err = tx.Raw("SELECT " + selectInstance).Scan(&start).Error
	return start, database.Wrap("identify the server", err)
}

// SettledEvent reads the last event, and waits until every transaction with an id has ended: those that add events have
// one before (secureStatement, secureInsert). A commit is late if the server waits for a standby.
func (d *Database) SettledEvent(ctx context.Context, waiting func(transaction string)) (database.LogEnd, error) {
	reader := d.readers.GORM.WithContext(ctx)
	var start struct {
		database.LogEnd
		Xid string
	}
	// An event with a lower id, which is not visible yet, belongs to a transaction with an id that is lower than this one.
	err := reader.Raw("SELECT coalesce(max(id), 0) AS id, (SELECT at FROM events ORDER BY id DESC LIMIT 1) AS at, " +
		selectInstance + " AS instance, pg_current_xact_id()::text AS xid FROM events").Scan(&start).Error
	end := start.LogEnd
	if err != nil {
		return end, fmt.Errorf("find the last event: %w", err)
	}
	for report := time.After(longTransaction); ; {
		var now struct {
			IsSettled bool
			Instance  string
		}
		err := reader.Raw("SELECT pg_snapshot_xmin(pg_current_snapshot()) > ?::text::xid8 AS is_settled, "+selectInstance+
			" AS instance", start.Xid).Scan(&now).Error
		switch {
		case err != nil:
			return end, fmt.Errorf("find open transactions: %w", err)
		case now.Instance != end.Instance:
			return end, fmt.Errorf("%w: another server has become the primary", database.ErrUnavailable)
		case now.IsSettled:
			return end, nil
		}
		select {
		case <-time.After(settleInterval):
		case <-report:
			waiting(oldestTransaction(reader))
		case <-ctx.Done():
			return end, fmt.Errorf("wait for open transactions: %w", ctx.Err())
		}
	}
}

// selectOldest describes the oldest transaction with an id, in any database of the server.
const selectOldest = `SELECT text FROM (
	SELECT format('process %s of %s in database %s, since %s', pid, usename, datname, xact_start) AS text,
		age(backend_xid) AS age FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
	UNION ALL SELECT format('prepared transaction %L of %s in database %s, since %s', gid, owner, database, prepared),
		age(transaction) FROM pg_prepared_xacts) AS open ORDER BY age DESC LIMIT 1`

func oldestTransaction(reader *gorm.DB) string {
	var text string
	if err := reader.Raw(selectOldest).Scan(&text).Error; err != nil || text == "" {
		return "one that this role cannot see"
	}
	return text
}
