package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"example.com/providerd/store/event"
	"example.com/providerd/store/records"
	"example.com/providerd/store/rows"
)

// Delete deletes providers, all or none, in one transaction; pass at most a few thousand. Their idempotency
// keys go with them, so that a create with the same key creates a record again. Their events stay.
//
// It returns ErrNotFound for each provider that does not exist, ErrProviderInUse for each that is linked to an
// application, or ErrUnavailable; nothing is deleted then. It can also return ErrOutcomeUnknown.
func (p *Providers) Delete(ctx context.Context, pks []int64) error {
	err := p.database.Write(ctx, func(tx *gorm.DB) error { return deleteProviders(tx, pks) })
	if err != nil {
		return fmt.Errorf("delete providers: %w", err)
	}
	return nil
}

// deleteProviders is Delete within a transaction.
func deleteProviders(tx *gorm.DB, pks []int64) error {
	providers, err := Reader{transaction: tx}.Deletable(tx.Statement.Context, pks)
	if err != nil {
		return err
	}
	var events []event.Event
	for _, deleted := range providers {
		events = append(events, eventOf(event.ProviderDeleted, deleted, nil))
	}
	for chunk := range slices.Chunk(pks, rows.PageSize) {
		if err := tx.Delete(&records.Provider{}, "pk IN ?", chunk).Error; err != nil {
			return err
		}
	}
	return event.Add(tx, events...)
}

// Deletable returns the providers with these pks, ordered by pk, without their settings, which may be damaged. It
// returns the errors of Delete.
func (r Reader) Deletable(ctx context.Context, pks []int64) ([]records.Provider, error) {
	// A violated constraint would report neither which providers cannot be deleted nor why.
	tx := r.reader(ctx)
	var providers []records.Provider
	for chunk := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(pks))), rows.PageSize) {
		var page []records.Provider
		if err := tx.Where("pk IN ?", chunk).Order("pk").Find(&page).Error; err != nil {
			return nil, fmt.Errorf("read providers: %w", err)
		}
		if err := records.AddApplications(tx, page); err != nil {
			return nil, err
		}
		providers = append(providers, page...)
	}
	found := map[int64]bool{}
	var missing, linked []error
	for _, provider := range providers {
		found[provider.PK] = true
		for _, application := range []records.Application{provider.Application, provider.Backchannel.Application} {
			if application.ID != 0 {
				linked = append(linked, fmt.Errorf("provider %d: %w: %s", provider.PK, ErrProviderInUse, application.Slug))
			}
		}
	}
	for _, pk := range pks {
		if !found[pk] {
			missing = append(missing, fmt.Errorf("provider %d: %w", pk, ErrNotFound))
		}
	}
	return providers, errors.Join(append(missing, linked...)...)
}
