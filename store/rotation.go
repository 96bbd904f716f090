package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// Reseal seals with the primary key the secrets that were sealed with older keys, and then removes the data keys that
// no secret needs. It uses small transactions, so that servers can create meanwhile, and calls progress after each. If
// it is interrupted, the next call continues. It returns how many keys were removed.
//
// It returns ErrDamaged for secrets that cannot be opened, which it skips, ErrKeysetInUse if another program, such as
// pg_dump, reads the keyset all the time, ErrUnavailable or ErrOutcomeUnknown.
func (s *Store) Reseal(ctx context.Context, progress func(done, total int64)) (removed int, err error) {
	run := resealing{store: s, progress: progress}
	for err = errStartOver; errors.Is(err, errStartOver); {
		err = run.all(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("reseal: %w", err)
	}
	return run.removed, errors.Join(run.damaged...)
}

var (
	// ErrKeysetInUse means that transactions that may seal with older keys did not end in time.
	ErrKeysetInUse = errors.New("other transactions read the keyset of the database")
	// errStartOver means that since a run began, the keyset was changed, or another server has taken over. That server may
	// lack what the run has resealed.
	errStartOver = errors.New("keys changed, or another server has taken over")
)

// resealing is a call of Reseal.
type resealing struct {
	store    *Store
	progress func(done, total int64)
	// version is that of the keyset when the run began, and keys are its keys. instance is the server.
	version     []byte
	keys        *seal.Keys
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
	if err := r.store.database.ChangeAlone(ctx, r.begin); err != nil {
		if errors.Is(err, database.ErrLocked) {
			err = fmt.Errorf("%w; run \"providerd key reseal\" when a dump or another change has ended: %w", ErrKeysetInUse, err)
		}
		return err
	}
	for _, column := range sealedColumns() {
		var count int64
		query := column.outdated(r.store.reader(ctx).Table(column.table), r.keys)
		if err := query.Count(&count).Error; err != nil {
			return fmt.Errorf("count secrets: %w", err)
		}
		r.total += count
	}
	r.progress(0, r.total)
	for _, column := range sealedColumns() {
		if err := r.column(ctx, column); err != nil {
			return err
		}
	}
	return r.store.database.Change(ctx, r.finish)
}

// begin reads the keyset.
func (r *resealing) begin(tx *gorm.DB) error {
	row, err := findKeyset(tx)
	if err != nil {
		return err
	}
	r.version = row.Version
	if r.instance, err = r.store.database.Instance(tx); err != nil {
		return err
	}
	r.keys, err = r.store.keys.load(tx)
	return err
}

// check returns errStartOver if the run must start over.
func (r *resealing) check(tx *gorm.DB) error {
	row, err := findKeyset(tx.Select("version"))
	if err != nil {
		return err
	}
	instance, err := r.store.database.Instance(tx)
	if err == nil && (instance != r.instance || !bytes.Equal(row.Version, r.version)) {
		return errStartOver
	}
	return err
}

func (r *resealing) column(ctx context.Context, column sealedColumn) error {
	for after := int32(0); ; {
		var done page
		var begun time.Time
		err := r.store.database.Change(ctx, func(tx *gorm.DB) (err error) {
			begun = time.Now()
			done, err = r.page(tx, column, after)
			return err
		})
		if err != nil || done.last == 0 {
			return err
		}
		after = done.last
		r.damaged = append(r.damaged, done.damaged...)
		if r.done += done.count; done.count > 0 {
			r.progress(r.done, max(r.done, r.total))
		}
		// Pause for as long as the transaction took: SQLite has no queue of writers, so others would rarely get the lock.
		select {
		case <-time.After(time.Since(begun)):
		case <-ctx.Done():
			return fmt.Errorf("reseal: %w", ctx.Err())
		}
	}
}

// page is what one transaction has done with the secrets up to the pk last; 0 if there are no more.
type page struct {
	last    int32
	count   int64
	damaged []error
}

const (
	// pageRange is the number of pks that one transaction searches.
	pageRange = 10_000
	// pageTime ends a transaction early, so that it also fits into its time over a slow network.
	pageTime = time.Second
)

// page reseals the next secrets.
func (r *resealing) page(tx *gorm.DB, column sealedColumn, after int32) (done page, err error) {
	begun := time.Now()
	if err := r.check(tx); err != nil {
		return page{}, err
	}
	var first int64
	err = tx.Table(column.table).Select("coalesce(min(pk), 0)").Where("pk > ?", after).Scan(&first).Error
	if err != nil || first == 0 {
		return page{}, err
	}
	last := min(first+pageRange-1, math.MaxInt32)
	values, err := column.values(column.outdated(tx.Where("pk BETWEEN ? AND ?", first, last), r.keys))
	if err != nil {
		return page{}, err
	}
	done = page{last: int32(last), count: int64(len(values))} //nolint:gosec // It fits.
	if len(values) == resealBatch {
		done.last = values[len(values)-1].PK
	}
	for i, value := range values {
		if err := r.reseal(tx, column, value, &done); err != nil {
			return page{}, err
		}
		if time.Since(begun) > pageTime {
			done.last, done.count = value.PK, int64(i+1)
			break
		}
	}
	return done, nil
}

// reseal reseals a secret, or notes that it is damaged.
func (r *resealing) reseal(tx *gorm.DB, column sealedColumn, value sealedValue, done *page) error {
	at := column.place(value.PK)
	secret, err := r.keys.Unseal(value.Value, at)
	if err != nil {
		done.damaged = append(done.damaged, err)
		return nil
	}
	sealed, err := r.keys.Seal(secret, at)
	if err != nil {
		return err
	}
	return column.update(tx, value.PK, sealed)
}

// finish removes the keys that no secret uses. It counts them, because another program may have inserted secrets behind
// the pages, and damaged ones keep their key.
func (r *resealing) finish(tx *gorm.DB) error {
	if err := r.check(tx); err != nil {
		return err
	}
	uses, err := countKeyUses(tx)
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
		if err := addKeyEvent(tx, EventKeyRemoved, id); err != nil {
			return err
		}
	}
	if r.removed = len(removed); r.removed > 0 {
		err := r.store.saveKeyset(tx, func(_ *gorm.DB, change *keysetChange) error {
			change.keys = kept
			return nil
		})
		if err != nil {
			return err
		}
	}
	return addKeyEvent(tx, EventSecretsResealed, r.keys.PrimaryID())
}
