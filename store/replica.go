package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

const (
	// beatInterval is the interval between heartbeats of a replica.
	beatInterval = 3 * time.Second
	// leaseTime is how long after its last heartbeat a replica may create.
	leaseTime = 10 * time.Second
	// deathTime is how long after its last heartbeat a replica counts as dead. It is longer than leaseTime, so that a dead
	// replica creates nothing.
	deathTime = 12 * time.Second
)

// replicaRow is what a replica reports about itself.
type replicaRow struct {
	ID   string `gorm:"primaryKey"`
	Name string
	// Keys holds the key that it seals with, followed by all keys that it has, including that one. Releases without "key
	// retire" report only the latter.
	Keys []uint32 `gorm:"serializer:json"`
	// Beat counts heartbeats.
	Beat int64
}

// TableName returns the table for GORM.
func (replicaRow) TableName() string { return "replicas" }

// replica is this process, one of those that share a database. Its heartbeats report its keys, so that no replica seals
// with a key that another one lacks. It creates nothing while it cannot report them.
type replica struct {
	id, name string
	database database.Database
	keyring  *seal.Keyring

	// beating holds a value during a heartbeat, so that an earlier one does not replace a later one.
	beating chan struct{}
	// mutex is never held during a query.
	mutex sync.Mutex
	// keys are those of the last successful heartbeat, lastBeat its time, and err why the next one failed.
	keys     *seal.Keys
	lastBeat time.Time
	err      error

	stop  context.CancelFunc
	ended chan struct{}
}

// joinReplicas sends the first heartbeat and starts sending more. It returns ErrKeysetUnusable or ErrUnavailable.
func joinReplicas(ctx context.Context, db database.Database, keyring *seal.Keyring) (*replica, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name the replica: %w", err)
	}
	r := &replica{
		id: rand.Text(), name: fmt.Sprintf("%s, process %d", host, os.Getpid()), database: db, keyring: keyring,
		beating: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	if _, err := r.beat(ctx); err != nil {
		return nil, err
	}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	go r.run(ctx)
	return r, nil
}

func (r *replica) run(ctx context.Context) {
	defer close(r.ended)
	beats := time.NewTicker(beatInterval)
	defer beats.Stop()
	for {
		select {
		case <-beats.C:
			_, _ = r.beat(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// beat sends a heartbeat with the current keys and returns them. They must open what the other replicas seal.
func (r *replica) beat(ctx context.Context) (*seal.Keys, error) {
	select {
	case r.beating <- struct{}{}:
		defer func() { <-r.beating }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: wait to send a heartbeat: %w", ErrUnavailable, ctx.Err())
	}
	// Other replicas measure from the commit, which is later.
	started := time.Now()
	keys, err := r.keyring.Current(ctx)
	if err == nil {
		r.dropOther(keys)
		err = r.report(ctx, keys)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.err = err; err == nil {
		r.keys, r.lastBeat = keys, started
	}
	return keys, err
}

// dropOther ensures that nothing sealed with other keys than these is committed from now on. Programs that read the
// report of this replica rely on it.
func (r *replica) dropOther(keys *seal.Keys) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if keys != r.keys {
		r.keys = nil
	}
}

// report stores a heartbeat.
func (r *replica) report(ctx context.Context, keys *seal.Keys) error {
	err := r.database.Change(ctx, func(tx *gorm.DB) error {
		var proof keysetRow
		if err := tx.Take(&proof).Error; err != nil {
			return fmt.Errorf("find the keyset of the database: %w", found(err))
		}
		if err := proof.verify(keys); err != nil {
			return err
		}
		if err := checkNotRetired(tx, keys); err != nil {
			return err
		}
		reported := append([]uint32{keys.PrimaryID()}, keys.IDs()...)
		update := clause.OnConflict{
			Columns: []clause.Column{{Name: "id"}},
			DoUpdates: clause.Assignments(map[string]any{
				"keys": clause.Column{Table: "excluded", Name: "keys"}, "beat": gorm.Expr("replicas.beat + 1"),
			}),
		}
		return tx.Clauses(update).
			Create(&replicaRow{ID: r.id, Name: r.name, Keys: reported, Beat: 1}).Error
	})
	if errors.Is(err, ErrOutcomeUnknown) {
		// The unknown outcome is that of the heartbeat, not of the create that waits for it.
		err = fmt.Errorf("%w: %s", ErrUnavailable, err.Error())
	}
	if err != nil {
		return fmt.Errorf("send heartbeat: %w", err)
	}
	return nil
}

// current returns the keys after they were reported. It returns ErrUnavailable.
func (r *replica) current(ctx context.Context) (*seal.Keys, error) {
	keys, err := r.keyring.Current(ctx)
	if err != nil {
		return nil, err
	}
	if r.isCurrent(ctx, keys) {
		return keys, nil
	}
	return r.beat(ctx)
}

// isCurrent reports whether the last heartbeat is recent and reported the keys. It does not query the database, because
// it is called in transactions.
func (r *replica) isCurrent(_ context.Context, keys *seal.Keys) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return keys == r.keys && time.Since(r.lastBeat) < leaseTime
}

// ready returns nil if the replica may create, and otherwise ErrUnavailable.
func (r *replica) ready() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if time.Since(r.lastBeat) < leaseTime {
		return nil
	}
	return errors.Join(ErrUnavailable, r.err)
}

// leave removes the row of the replica. If that fails, the others will count the replica as dead.
func (r *replica) leave() {
	r.stop()
	<-r.ended
	ctx, cancel := context.WithTimeout(context.Background(), beatInterval)
	defer cancel()
	_ = r.database.Change(ctx, func(tx *gorm.DB) error { return tx.Delete(&replicaRow{}, "id = ?", r.id).Error })
}
