package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"example.com/providerd/store/database"
)

// checkTimeout limits Check.
const checkTimeout = 2 * time.Second

// probeInterval is the least time between probes of the server.
const probeInterval = 500 * time.Millisecond

// readiness is the result of the last probe.
type readiness struct {
	mutex    sync.Mutex
	known    time.Time
	prepared database.Prepared
	err      error
}

// Check returns an error unless the server stores rows now, or did within the last half second. A response alone is not
// enough, because a standby responds too, and so does a primary without its standbys. It takes at most checkTimeout.
func (d *Database) Check(ctx context.Context) error {
	r := &d.readiness
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if time.Since(r.known) < probeInterval {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	if r.err != nil {
		// Another server may have taken over since.
		r.prepared.Forget()
	}
	if r.err = d.probe(ctx); r.err == nil {
		r.err = r.prepared.Renew(func() error { return d.Prepare(ctx) })
	}
	r.known = time.Now()
	return r.err
}

// probe retries if the server is out of connections.
func (d *Database) probe(ctx context.Context) error {
	var tx *transaction
	err := retry(ctx, func() (again bool, err error) {
		tx, err = d.connection(ctx, d.writers)
		return hasCode(err, tooManyConnections), err
	})
	if err == nil {
		err = d.prove(ctx, tx)
	}
	if err != nil {
		return err
	}
	return d.probeInserts(ctx, tx)
}

// insertNothing inserts no rows, but needs the same privileges and locks as a create. insertLarge writes as much as a
// large create. Both name the columns, because operators may have added others.
const (
	probeColumns = `uid, kind, name, created_at, created_by, request_id, remote_address, secret, generated,
		property_mappings, property_mappings_group, delegated_subject, scopes, exclude_users_service_account,
		user_delete_action, group_delete_action, default_group_email_domain`
	insertNothing = `INSERT INTO providers (` + probeColumns + `) SELECT ` + probeColumns + ` FROM providers WHERE false`
	insertLarge   = `INSERT INTO providers (` + probeColumns + `) VALUES (gen_random_uuid(),
		'workspace_directory', '', now(), '', '', '', $1, 0, '[]', '[]', '', '', false, 'delete', 'delete', '')`
	// largeSecret is how many random bytes, which do not compress, insertLarge writes.
	largeSecret = 64 << 10
)

// probeInserts returns database.ErrUnavailable if creates cannot insert rows. It inserts none, or after a failure some
// that it rolls back.
func (d *Database) probeInserts(ctx context.Context, tx *transaction) error {
	statements := []statement{
		{text: beginStatement}, {text: "SET LOCAL lock_timeout = '500ms'"}, {text: insertNothing},
	}
	if d.isInsertFailing.Load() {
		secret := make([]byte, largeSecret)
		_, _ = rand.Read(secret)
		statements = append(statements, statement{insertLarge, [][]byte{secret}})
	}
	_, err := tx.exchange(ctx, statements...)
	d.isInsertFailing.Store(err != nil)
	tx.rollBack(ctx)
	if err != nil {
		return fmt.Errorf("insert rows: %w", unavailable(err))
	}
	return nil
}
