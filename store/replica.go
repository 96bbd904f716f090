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
	// beatInterval lies between two signs of life of a replica.
	beatInterval = 3 * time.Second
	// leaseTime is how long after its last sign of life a replica may create.
	leaseTime = 10 * time.Second
	// deathTime is how long a replica must have given no sign of life to count as dead. It is longer than leaseTime, so
	// that what counts as dead creates nothing.
	deathTime = 12 * time.Second
)

// replicaRow is what a replica says of itself.
type replicaRow struct {
	ID   string `gorm:"primaryKey"`
	Name string
	// Keys are first the one that it seals with, then all that it can open secrets with, the same one among them. The
	// releases that could not retire a key told only the latter.
	Keys []uint32 `gorm:"serializer:json"`
	// Beat is raised by each sign of life.
	Beat int64
}

// TableName names the table for GORM.
func (replicaRow) TableName() string { return "replicas" }

// replica is this program among those that share a database. It tells the others which keys it has, so that none seals
// with a key that another one lacks, and creates nothing while they cannot know.
type replica struct {
	id, name string
	database database.Database
	keyring  *seal.Keyring

	// telling has a value while a sign of life is given, so that an earlier one does not replace a later one.
	telling chan struct{}
	// mutex is never held while the database is asked.
	mutex sync.Mutex
	// keys are those that the last sign of life told, which was given at the time beaten; err is why the next one failed.
	keys   *seal.Keys
	beaten time.Time
	err    error

	stop  context.CancelFunc
	ended chan struct{}
}

// joinReplicas gives the first sign of life, and goes on with it. It returns ErrKeysetUnusable or ErrUnavailable.
func joinReplicas(ctx context.Context, db database.Database, keyring *seal.Keyring) (*replica, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name the replica: %w", err)
	}
	r := &replica{
		id: rand.Text(), name: fmt.Sprintf("%s, process %d", host, os.Getpid()), database: db, keyring: keyring,
		telling: make(chan struct{}, 1), ended: make(chan struct{}),
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

// beat gives a sign of life with the keys of now, which it returns. They must be able to open what the others seal.
func (r *replica) beat(ctx context.Context) (*seal.Keys, error) {
	select {
	case r.telling <- struct{}{}:
		defer func() { <-r.telling }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: wait to give a sign of life: %w", ErrUnavailable, ctx.Err())
	}
	// Others count from the commit, which is later.
	begun := time.Now()
	keys, err := r.keyring.Current(ctx)
	if err == nil {
		r.forgetOther(keys)
		err = r.tell(ctx, keys)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.err = err; err == nil {
		r.keys, r.beaten = keys, begun
	}
	return keys, err
}

// forgetOther makes sure that nothing is committed any more that other keys than these have sealed. Whoever finds that
// this replica has told of them may then rely on it.
func (r *replica) forgetOther(keys *seal.Keys) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if keys != r.keys {
		r.keys = nil
	}
}

// tell stores a sign of life.
func (r *replica) tell(ctx context.Context, keys *seal.Keys) error {
	err := r.database.Change(ctx, func(tx *gorm.DB) error {
		var proof keysetRow
		if err := tx.Take(&proof).Error; err != nil {
			return fmt.Errorf("look up the keyset of the database: %w", found(err))
		}
		if err := proof.verify(keys); err != nil {
			return err
		}
		if err := refuseRetired(tx, keys); err != nil {
			return err
		}
		told := append([]uint32{keys.PrimaryID()}, keys.IDs()...)
		again := clause.OnConflict{
			Columns: []clause.Column{{Name: "id"}},
			DoUpdates: clause.Assignments(map[string]any{
				"keys": clause.Column{Table: "excluded", Name: "keys"}, "beat": gorm.Expr("replicas.beat + 1"),
			}),
		}
		return tx.Clauses(again).
			Create(&replicaRow{ID: r.id, Name: r.name, Keys: told, Beat: 1}).Error
	})
	if errors.Is(err, ErrOutcomeUnknown) {
		// It is not the outcome of the create that waits for it.
		err = fmt.Errorf("%w: %s", ErrUnavailable, err.Error())
	}
	if err != nil {
		return fmt.Errorf("give a sign of life: %w", err)
	}
	return nil
}

// current returns the keys, once the others know that this replica has them. It returns ErrUnavailable.
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

// isCurrent reports whether the others know that this replica lives and seals with the keys. It asks nobody: it is
// called in transactions.
func (r *replica) isCurrent(_ context.Context, keys *seal.Keys) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return keys == r.keys && time.Since(r.beaten) < leaseTime
}

// ready tells whether the replica may create. It returns ErrUnavailable.
func (r *replica) ready() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if time.Since(r.beaten) < leaseTime {
		return nil
	}
	return errors.Join(ErrUnavailable, r.err)
}

// leave takes the replica back. Where the database is away, the others find out by themselves.
func (r *replica) leave() {
	r.stop()
	<-r.ended
	ctx, cancel := context.WithTimeout(context.Background(), beatInterval)
	defer cancel()
	_ = r.database.Change(ctx, func(tx *gorm.DB) error { return tx.Delete(&replicaRow{}, "id = ?", r.id).Error })
}
