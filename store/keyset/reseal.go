package keyset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
)

// Reseal seals with the primary key the secrets that were sealed with older keys, and then removes the data keys that
// no secret needs. It uses small transactions, so that servers can go on creating, and calls progress after each. If
// it is interrupted, the next call continues. It returns how many keys were removed.
//
// It returns ErrDamaged for secrets that cannot be opened, which it skips, ErrInUse if another program, such as
// pg_dump, reads the keyset all the time, ErrUnavailable or ErrOutcomeUnknown.
func (k *Keys) Reseal(ctx context.Context, progress func(done, total int64)) (removed int, err error) {
	run := resealing{of: k, progress: progress}
	for err = errStartOver; errors.Is(err, errStartOver); {
		err = run.all(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("reseal: %w", err)
	}
	return run.removed, errors.Join(run.damaged...)
}

var (
	// ErrInUse means that transactions that may seal with older keys did not end in time.
	ErrInUse = errors.New("other transactions are reading the keyset of the database")
	// errStartOver means that the keyset changed during a run, or that a new primary may lack what was resealed.
	errStartOver = errors.New("keys changed, or another server became the primary")
)

// resealing is a call of Reseal.
type resealing struct {
	of       *Keys
	progress func(done, total int64)
	// keys are the keys of the database when the run began, on the server instance.
	keys        *Loaded
	instance    string
	done, total int64
	// damaged are the errors of secrets that do not open.
	damaged []error
	removed int
}

// all reseals all secrets. Every transaction that has read an earlier version of the keyset ends before the first
// secret is read, and later ones seal with the primary key: once all secrets are read, no other key is needed.
func (r *resealing) all(ctx context.Context) error {
	r.done, r.total, r.damaged = 0, 0, nil
	if err := r.of.database.Write(ctx, r.begin); err != nil {
		if errors.Is(err, database.ErrLocked) {
			err = fmt.Errorf("%w: %w; wait for other programs, such as pg_dump, to finish, then run "+
				"\"providerd key reseal\"", ErrInUse, err)
		}
		return err
	}
	if err := outdated(r.of.database.Reader().WithContext(ctx), r.keys).Count(&r.total).Error; err != nil {
		return fmt.Errorf("count secrets: %w", err)
	}
	r.progress(0, r.total)
	if err := r.pages(ctx); err != nil {
		return err
	}
	return r.of.database.Write(ctx, r.finish)
}

// lockKeyset waits for the transactions that have read the version of the keyset, and makes later ones wait until this
// one ends. Inserts wait as well, so it gives up soon.
const lockKeyset = `SET LOCAL lock_timeout = '500ms'; LOCK TABLE keyset IN ACCESS EXCLUSIVE MODE`

// begin waits for the transactions that may seal with an older key, and reads the keys.
func (r *resealing) begin(tx *gorm.DB) (err error) {
	if r.of.database.IsShared() {
		if err := tx.Exec(lockKeyset).Error; err != nil {
			return fmt.Errorf("lock the keyset: %w", err)
		}
	}
	if r.instance, err = r.of.database.Instance(tx); err != nil {
		return err
	}
	r.keys, err = r.of.Load(tx)
	return err
}

func (r *resealing) check(tx *gorm.DB) error {
	keys, err := r.of.Latest(tx)
	if err != nil {
		return err
	}
	instance, err := r.of.database.Instance(tx)
	if err == nil && (instance != r.instance || !bytes.Equal(keys.Version, r.keys.Version)) {
		return errStartOver
	}
	return err
}

const (
	// resealBatch is the number of secrets resealed in one transaction; more would make creates wait.
	resealBatch = 200
	// pageTime ends a transaction early, so that it also fits into its time over a slow network.
	pageTime = time.Second
)

func (r *resealing) pages(ctx context.Context) error {
	for after := int64(0); ; {
		var rows []records.Provider
		query := outdated(r.of.database.Reader().WithContext(ctx), r.keys).Select("pk", "uid", "kind", "secret")
		if err := query.Where("pk > ?", after).Order("pk").Limit(resealBatch).Find(&rows).Error; err != nil {
			return fmt.Errorf("read secrets: %w", err)
		}
		if len(rows) == 0 {
			return nil
		}
		begun, read, resealed, damaged := time.Now(), 0, int64(0), []error(nil)
		err := r.of.database.Write(ctx, func(tx *gorm.DB) (err error) {
			read, resealed, damaged, err = r.page(tx, rows)
			return err
		})
		if err != nil {
			return err
		}
		after = rows[read-1].PK
		r.damaged = append(r.damaged, damaged...)
		r.done += resealed
		// The others were deleted, or sealed with the primary key by another program.
		r.total -= int64(read-len(damaged)) - resealed
		r.progress(r.done, max(r.done, r.total))
		// Pause for as long as the transaction took: SQLite has no queue of writers, so others would rarely get the lock.
		select {
		case <-time.After(time.Since(begun)):
		case <-ctx.Done():
			return fmt.Errorf("reseal: %w", ctx.Err())
		}
	}
}

// outdated selects the providers whose secrets are not sealed with the primary key.
func outdated(tx *gorm.DB, keys *Loaded) *gorm.DB {
	return tx.Model(&records.Provider{}).Where("substr(secret, 1, 5) <> ?", seal.Prefix(keys.PrimaryID()))
}

// page reads secrets, at least one, and reseals those still unchanged. It returns how many, and which do not open.
func (r *resealing) page(tx *gorm.DB, rows []records.Provider) (read int, resealed int64, damaged []error, err error) {
	begun := time.Now()
	if err := r.check(tx); err != nil {
		return 0, 0, nil, err
	}
	for read == 0 || read < len(rows) && time.Since(begun) <= pageTime {
		row := rows[read]
		read++
		secret, err := r.keys.Unseal(row.Sealed, records.PlaceOf(row))
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		sealed, err := r.keys.Seal(secret, records.PlaceOf(row))
		if err != nil {
			return 0, 0, nil, err
		}
		unchanged := tx.Model(&records.Provider{}).Where("pk = ? AND secret = ?", row.PK, row.Sealed)
		written := unchanged.UpdateColumn("secret", sealed)
		if err := written.Error; err != nil {
			return 0, 0, nil, fmt.Errorf("write the secret of provider %d: %w", row.PK, err)
		}
		resealed += written.RowsAffected
	}
	return read, resealed, damaged, nil
}

// finish removes the keys that no secret uses. It counts them, because another program may have inserted secrets behind
// the pages, and damaged ones keep their key.
func (r *resealing) finish(tx *gorm.DB) error {
	if err := r.check(tx); err != nil {
		return err
	}
	uses, err := countUses(tx)
	if err != nil {
		return err
	}
	kept, err := r.keys.Without(slices.Collect(maps.Keys(uses)))
	if err != nil {
		return err
	}
	left := kept.IDs()
	removed := slices.DeleteFunc(r.keys.IDs(), func(id uint32) bool { return slices.Contains(left, id) })
	for _, id := range removed {
		if err := event.Add(tx, event.Event{Event: event.KeyRemoved, Subject: int64(id)}); err != nil {
			return err
		}
	}
	if r.removed = len(removed); r.removed > 0 {
		err := r.of.change(tx, func(c *change) error {
			c.keys = kept
			return nil
		})
		if err != nil {
			return err
		}
	}
	return event.Add(tx, event.Event{Event: event.SecretsResealed, Subject: int64(r.keys.PrimaryID())})
}
