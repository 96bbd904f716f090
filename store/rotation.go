package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/seal"
)

// Reseal seals with the primary key the secrets that were sealed with older keys. It uses small transactions, so that a
// server can create meanwhile, and calls progress after each. If it is interrupted, the next call continues.
//
// It returns ErrDamaged for secrets that cannot be opened, which it skips, ErrNoKeyset, ErrKeysetUnusable or
// ErrUnavailable.
func (s *Store) Reseal(ctx context.Context, progress func(done, total int64)) error {
	keys, err := s.keyring.Current(ctx)
	if err != nil {
		return fmt.Errorf("reseal: %w", err)
	}
	run := resealing{store: s, keys: keys, progress: progress}
	if err := run.count(ctx); err != nil {
		return fmt.Errorf("reseal: %w", err)
	}
	progress(0, run.total)
	for _, column := range sealedColumns() {
		if err := run.column(ctx, column); err != nil {
			return fmt.Errorf("reseal: %w", err)
		}
	}
	if err := s.database.Change(ctx, func(tx *gorm.DB) error { return run.finish(ctx, tx) }); err != nil {
		return fmt.Errorf("reseal: %w", err)
	}
	return errors.Join(run.damaged...)
}

// resealing is a call of Reseal.
type resealing struct {
	store       *Store
	keys        *seal.Keys
	progress    func(done, total int64)
	done, total int64
	damaged     []error
}

func (r *resealing) count(ctx context.Context) error {
	for _, column := range sealedColumns() {
		var count int64
		query := column.outdated(r.store.reader(ctx).Table(column.table), r.keys)
		if err := query.Count(&count).Error; err != nil {
			return fmt.Errorf("count secrets to reseal: %w", err)
		}
		r.total += count
	}
	return nil
}

func (r *resealing) column(ctx context.Context, column sealedColumn) error {
	for after := int32(0); ; {
		var values []sealedValue
		var damaged []error
		var begun time.Time
		err := r.store.database.Change(ctx, func(tx *gorm.DB) error {
			begun = time.Now()
			err := r.useCurrent(ctx, tx)
			if err != nil {
				return err
			}
			if values, err = column.values(column.outdated(tx.Where("pk > ?", after), r.keys)); err != nil {
				return err
			}
			damaged, err = r.batch(tx, column, values)
			return err
		})
		if err != nil || len(values) == 0 {
			return err
		}
		after = values[len(values)-1].PK
		r.done += int64(len(values))
		r.damaged = append(r.damaged, damaged...)
		r.progress(r.done, r.total)
		// Pause for as long as the transaction took: SQLite has no queue of writers, so others would rarely get the lock.
		select {
		case <-time.After(time.Since(begun)):
		case <-ctx.Done():
			return fmt.Errorf("reseal: %w", ctx.Err())
		}
	}
}

// useCurrent updates the keys.
func (r *resealing) useCurrent(ctx context.Context, tx *gorm.DB) (err error) {
	r.keys, err = r.store.currentKeys(ctx, tx)
	return err
}

// currentKeys returns the keys, which stay current until the transaction ends.
func (s *Store) currentKeys(ctx context.Context, tx *gorm.DB) (*seal.Keys, error) {
	keys, err := s.keyring.Current(ctx)
	if err != nil {
		return nil, err
	}
	return keys, checkNotRetired(tx, keys)
}

// batch reseals values. It returns the errors of those that cannot be opened.
func (r *resealing) batch(tx *gorm.DB, column sealedColumn, values []sealedValue) (damaged []error, err error) {
	for _, value := range values {
		at := column.place(value.PK)
		secret, err := r.keys.Unseal(value.Value, at)
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		sealed, err := r.keys.Seal(secret, at)
		if err != nil {
			return nil, err
		}
		if err := column.update(tx, value.PK, sealed); err != nil {
			return nil, err
		}
	}
	return damaged, nil
}

func (r *resealing) finish(ctx context.Context, tx *gorm.DB) error {
	if err := r.useCurrent(ctx, tx); err != nil {
		return err
	}
	if err := saveKeyset(tx, r.keys); err != nil {
		return err
	}
	return addKeyEvent(tx, EventSecretsResealed, r.keys.PrimaryID())
}
