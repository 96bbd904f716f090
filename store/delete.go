package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
)

// Deletable returns the providers with these pks, ordered by pk, without their settings, which may be damaged. It
// returns the errors of DeleteProviders.
func (s *Store) Deletable(ctx context.Context, pks []int64) ([]Provider, error) {
	return deletable(s.reader(ctx), pks)
}

// DeleteProviders deletes providers, all or none, in one transaction; pass at most a few thousand. Their idempotency
// keys go with them, so that a create with the same key creates a record again. The events of their creation and
// deletion stay; the latter have osUser as the user who deleted them.
//
// It returns ErrNotFound for each provider that does not exist, ErrProviderInUse for each that is linked to an
// application, or ErrUnavailable; nothing is deleted then. It can also return ErrOutcomeUnknown.
func (s *Store) DeleteProviders(ctx context.Context, pks []int64, osUser string) error {
	err := s.database.Write(ctx, func(tx *gorm.DB) error {
		if _, err := deletable(tx, pks); err != nil {
			return err
		}
		for chunk := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(pks))), pageSize) {
			read, err := s.leavesIn(tx.Where("pk IN ?", chunk))
			if err != nil {
				return err
			}
			leaves := map[int64]Leaf{}
			for pk, leaf := range read {
				leaves[pk] = leaf.value
			}
			if err := deleteChunk(tx, chunk, leaves, osUser, now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete providers: %w", err)
	}
	return nil
}

// deletable reports which providers cannot be deleted and why; a violated constraint reports neither.
func deletable(tx *gorm.DB, pks []int64) ([]Provider, error) {
	var providers []Provider
	for chunk := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(pks))), pageSize) {
		var page []Provider
		if err := tx.Where("pk IN ?", chunk).Order("pk").Find(&page).Error; err != nil {
			return nil, fmt.Errorf("read providers: %w", err)
		}
		if err := addApplications(tx, page); err != nil {
			return nil, err
		}
		providers = append(providers, page...)
	}
	found := map[int64]bool{}
	var refusals []error
	for _, provider := range providers {
		found[provider.PK] = true
		for _, application := range []Application{provider.Application, provider.Backchannel.Application} {
			if application.ID != 0 {
				refusals = append(refusals, fmt.Errorf("provider %d: %w: %s", provider.PK, ErrProviderInUse, application.Slug))
			}
		}
	}
	for _, pk := range pks {
		if !found[pk] {
			refusals = append(refusals, fmt.Errorf("provider %d: %w", pk, ErrNotFound))
		}
	}
	return providers, errors.Join(refusals...)
}

// insertDeleted copies what is kept of providers into deleted_providers.
const insertDeleted = `INSERT INTO deleted_providers
	(pk, kind, name, created_at, created_by, request_id, remote_address, client_id, deleted_at)
	SELECT pk, kind, name, created_at, created_by, request_id, remote_address, coalesce(client_id, ''), ?
	FROM providers WHERE pk IN ?`

// deleteChunk deletes providers and adds their rows to the audit.
func deleteChunk(tx *gorm.DB, pks []int64, leaves map[int64]Leaf, osUser string, at Time) error {
	rows := make([]changeRow, len(pks))
	for i, pk := range pks {
		rows[i] = changeRow{
			At: at, PK: pk, Change: "deleted", Fields: List[string]{}, OSUser: osUser, LeafBefore: leaves[pk],
		}
	}
	if err := tx.Create(&rows).Error; err != nil {
		return fmt.Errorf("insert changes: %w", err)
	}
	if err := tx.Exec(insertDeleted, at, pks).Error; err != nil {
		return fmt.Errorf("insert deleted providers: %w", err)
	}
	if err := tx.Delete(&Provider{}, "pk IN ?", pks).Error; err != nil {
		return fmt.Errorf("delete providers: %w", err)
	}
	return nil
}
