package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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

// readiness is what the last probe showed, or the last batch that stored rows.
type readiness struct {
	mutex sync.Mutex
	known time.Time
	err   error
	// lastStored is when rows were stored last, or nil. It is apart, since a probe holds the mutex for long.
	lastStored atomic.Pointer[time.Time]
}

// stored notes that rows were stored.
func (r *readiness) stored() { r.lastStored.Store(new(time.Now())) }

func (r *readiness) hasJustStored() bool {
	last := r.lastStored.Load()
	return last != nil && time.Since(*last) < probeInterval
}

// Check tells whether the server stores rows now, or did half a second ago: that it answers is not enough, since a
// standby answers, and a primary without its standbys. It takes 2 seconds at most.
func (d *Database) Check(ctx context.Context) error {
	r := &d.readiness
	if r.hasJustStored() && !d.isInsertFailing.Load() && !d.hasUnknownCommit.Load() {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if time.Since(r.known) < probeInterval {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*probeTimeout)
	defer cancel()
	r.err = d.probe(ctx)
	r.known = time.Now()
	return r.err
}

func (d *Database) probe(ctx context.Context) error {
	tx, err := d.awaitConnection(ctx)
	if err != nil {
		d.reselectServer(ctx, err)
		return err
	}
	if err := tx.probe(ctx); err != nil {
		tx.discard()
		d.servers.avoid(tx.server)
		d.reset()
		return err
	}
	d.servers.prefer(tx.server)
	d.hasUnknownCommit.Store(false)
	return d.probeInserts(ctx, tx)
}

// awaitConnection waits up to probeTimeout for a connection of a server that has none to spare.
func (d *Database) awaitConnection(ctx context.Context) (tx *transaction, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err = retry(ctx, func() (again bool, err error) {
		tx, err = d.connection(ctx)
		return isOutOfConnections(err), err
	})
	return tx, err
}

// probeInserts makes sure that rows of creates can be inserted, and releases the connection.
func (d *Database) probeInserts(ctx context.Context, tx *transaction) error {
	var begin pgx.Batch
	begin.Queue("BEGIN")
	err := tx.send(ctx, &begin)
	if err == nil {
		err = tx.checkInsert(ctx, d.isInsertFailing.Load())
		d.isInsertFailing.Store(err != nil)
	}
	tx.rollBack(ctx)
	return err
}

// Statements that insert nothing, but need the privileges and wait for the locks that creates do; and those that write
// as a large create does. They use the last pk, which a provider may already have.
const (
	insertNothing = `INSERT INTO %[1]s SELECT * FROM %[1]s WHERE false`
	insertCommon  = `INSERT INTO providers (pk, kind, name, created_at, created_by, request_id, remote_address)
		VALUES (2147483647, 'workspace_directory', '', now(), '', '', '') ON CONFLICT DO NOTHING`
	insertLarge = `INSERT INTO workspace_directory_providers (pk, property_mappings, property_mappings_group,
		delegated_subject, credentials, scopes, exclude_users_service_account, user_delete_action, group_delete_action,
		default_group_email_domain) VALUES (2147483647, '[]', '[]', '', $1, '', false, '', '', '') ON CONFLICT DO NOTHING`
	// largeCredentials is how many random bytes, which do not compress, the probe writes.
	largeCredentials = 64 << 10
)

// checkInsert inserts no rows, or else some that it rolls back, in a transaction that continues whatever comes of it.
// It returns database.ErrUnavailable if creates cannot insert theirs.
func (t *transaction) checkInsert(ctx context.Context, withRows bool) error {
	// The driver lets the server parse all statements of a message before it runs the first, and parsing takes locks.
	var begin, inserts, end pgx.Batch
	begin.Queue("SAVEPOINT probe")
	begin.Queue("SELECT set_config('lock_timeout', '500ms', true)")
	for _, table := range []string{"providers", "oauth2_providers", "workspace_directory_providers"} {
		inserts.Queue(fmt.Sprintf(insertNothing, table))
	}
	if withRows {
		credentials := make([]byte, largeCredentials)
		_, _ = rand.Read(credentials)
		inserts.Queue(insertCommon)
		inserts.Queue(insertLarge, credentials)
	}
	end.Queue("ROLLBACK TO SAVEPOINT probe")
	err := t.send(ctx, &begin)
	if err == nil {
		err = errors.Join(t.send(ctx, &inserts), t.send(ctx, &end))
	}
	if err != nil {
		return fmt.Errorf("try to insert rows: %w", unavailable(err))
	}
	return nil
}

// probe commits a transaction without rows, and gives it up after probeTimeout. It returns database.ErrUnavailable.
func (t *transaction) probe(ctx context.Context) error {
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
