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
	// probeInterval is the least time between probes of the server.
	probeInterval = 500 * time.Millisecond
)

// readiness is the result of the last probe, or of the last batch that stored rows.
type readiness struct {
	mutex sync.Mutex
	known time.Time
	err   error
	// lastStored is when rows were last stored, or nil. It is not guarded by the mutex, which a probe holds for long.
	lastStored atomic.Pointer[time.Time]
}

// stored records that rows were stored.
func (r *readiness) stored() { r.lastStored.Store(new(time.Now())) }

func (r *readiness) hasJustStored() bool {
	last := r.lastStored.Load()
	return last != nil && time.Since(*last) < probeInterval
}

// Check returns an error unless the server stores rows now, or did within the last half second. A response alone is not
// enough, because a standby responds too, and so does a primary without its standbys. It takes at most 2 seconds.
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

// awaitConnection opens a connection. If the server is out of connections, it retries for up to probeTimeout.
func (d *Database) awaitConnection(ctx context.Context) (tx *transaction, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err = retry(ctx, func() (again bool, err error) {
		tx, err = d.connection(ctx)
		return isOutOfConnections(err), err
	})
	return tx, err
}

// probeInserts checks that creates can insert rows, and releases the connection.
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

// insertNothing inserts no rows, but needs the same privileges and locks as a create. insertCommon and insertLarge
// write as much as a large create. They use the highest pk, which a provider may already have.
const (
	insertNothing = `INSERT INTO %[1]s SELECT * FROM %[1]s WHERE false`
	insertCommon  = `INSERT INTO providers (pk, kind, name, created_at, created_by, request_id, remote_address)
		VALUES (2147483647, 'workspace_directory', '', now(), '', '', '') ON CONFLICT DO NOTHING`
	insertLarge = `INSERT INTO workspace_directory_providers (pk, property_mappings, property_mappings_group,
		delegated_subject, credentials, scopes, exclude_users_service_account, user_delete_action, group_delete_action,
		default_group_email_domain) VALUES (2147483647, '[]', '[]', '', $1, '', false, '', '', '') ON CONFLICT DO NOTHING`
	// largeCredentials is how many random bytes, which do not compress, insertLarge writes.
	largeCredentials = 64 << 10
)

// checkInsert returns database.ErrUnavailable if creates cannot insert rows. It inserts none, or with withRows some
// that it rolls back to a savepoint; the transaction stays usable either way.
func (t *transaction) checkInsert(ctx context.Context, withRows bool) error {
	// The driver makes the server parse all statements of a message before it runs the first, and parsing takes locks.
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
		return fmt.Errorf("insert rows: %w", unavailable(err))
	}
	return nil
}

// probe commits a transaction without rows. It returns database.ErrUnavailable if that fails or exceeds probeTimeout.
func (t *transaction) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var pipeline pgx.Batch
	t.queueBegin(&pipeline, secureStatement)
	pipeline.Queue("COMMIT")
	return t.raw(func(conn *pgx.Conn) error {
		_ = takeNotice(conn.PgConn())
		if err := conn.SendBatch(ctx, &pipeline).Close(); err != nil {
			return fmt.Errorf("commit: %w", unavailable(err))
		}
		if notice := takeNotice(conn.PgConn()); notice != nil {
			return fmt.Errorf("%w: commit: %w", database.ErrUnavailable, notice)
		}
		return nil
	})
}
