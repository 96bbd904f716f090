package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/database"
)

const (
	// probeTimeout is how long the commit of a probe may take.
	probeTimeout = time.Second
	// probeInterval bounds how often the server is probed, however often somebody asks.
	probeInterval = 500 * time.Millisecond
)

// readiness is what the last probe showed.
type readiness struct {
	mutex  sync.Mutex
	probed time.Time
	err    error
}

// Check tells whether the server commits now, or did half a second ago: that it answers is not enough, since a standby
// answers, and a primary without its standbys. It takes 1 second at most.
func (d *Database) Check(ctx context.Context) error {
	d.readiness.mutex.Lock()
	defer d.readiness.mutex.Unlock()
	if time.Since(d.readiness.probed) < probeInterval {
		return d.readiness.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	d.readiness.err = d.probe(ctx)
	d.readiness.probed = time.Now()
	return d.readiness.err
}

func (d *Database) probe(ctx context.Context) error {
	tx, err := d.connection(ctx)
	if err != nil {
		d.servers.forget(err)
		d.reset()
		return err
	}
	if err := tx.probe(ctx); err != nil {
		tx.discard()
		d.servers.avoid(tx.server)
		d.reset()
		return err
	}
	d.servers.prefer(tx.server)
	d.isDoubtful.Store(false)
	err = tx.checkPrivileges(ctx)
	_ = tx.conn.Close()
	return err
}

// lackingPrivileges names what creates need and may not use.
const lackingPrivileges = `SELECT coalesce(string_agg(name, ', '), '')
	FROM unnest(ARRAY['providers', 'oauth2_providers', 'workspace_directory_providers']) AS name
	WHERE NOT has_any_column_privilege(name, 'INSERT')`

// checkPrivileges makes sure that creates may insert their rows. It returns database.ErrUnavailable.
func (t transaction) checkPrivileges(ctx context.Context) error {
	var lacking string
	if err := t.conn.QueryRowContext(ctx, lackingPrivileges).Scan(&lacking); err != nil {
		return fmt.Errorf("look at the privileges: %w", unavailable(err))
	}
	if lacking != "" {
		return fmt.Errorf("%w: no privilege to insert into %s%s", database.ErrUnavailable, lacking, grantAdvice)
	}
	return nil
}

// probe commits a transaction without rows, and gives it up after probeTimeout. It returns database.ErrUnavailable.
func (t transaction) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var pipeline pgx.Batch
	queueBegin(&pipeline)
	pipeline.Queue("COMMIT")
	return t.raw(func(conn *pgx.Conn) error {
		_ = takeNotice(conn.PgConn())
		if err := conn.SendBatch(ctx, &pipeline).Close(); err != nil {
			return fmt.Errorf("try to commit: %w", unavailable(err))
		}
		if notice := takeNotice(conn.PgConn()); notice != nil {
			return fmt.Errorf("%w: try to commit: %w", database.ErrUnavailable, notice)
		}
		return nil
	})
}
