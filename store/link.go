package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
)

// Link adds links to an application, all or none, and returns the changed application. It reads Slug, ProviderPK and
// Backchannels of links. Existing links stay.
//
// It returns ErrNotFound, ErrWrongKind and ErrProviderLinked as CreateApplication does, ErrApplicationLinked if another
// provider serves the application, or ErrUnavailable; nothing is linked then. It can also return ErrOutcomeUnknown.
func (s *Store) Link(ctx context.Context, links Application) (Application, error) {
	return s.relink(ctx, "link application", links.Slug, func(tx *gorm.DB, application Application) error {
		added := application.missing(links)
		if err := checkLinks(tx, added); err != nil {
			return err
		}
		if pk := added.ProviderPK; pk != nil {
			if serving := application.ProviderPK; serving != nil {
				return fmt.Errorf("%s: %w: %d", application.Slug, ErrApplicationLinked, *serving)
			}
			if err := setProvider(tx, application, pk); err != nil {
				return err
			}
		}
		if err := insertBackchannels(tx, added); err != nil {
			return err
		}
		return addLinkEvents(tx, EventProviderLinked, added)
	})
}

// Unlink removes links from an application, all or none, and returns the changed application. It reads Slug, ProviderPK
// and Backchannels of links.
//
// It returns ErrNotFound for the application, ErrNotLinked for each provider that is not linked in this role, or
// ErrUnavailable; nothing is removed then. It can also return ErrOutcomeUnknown.
func (s *Store) Unlink(ctx context.Context, links Application) (Application, error) {
	return s.relink(ctx, "unlink application", links.Slug, func(tx *gorm.DB, application Application) error {
		missing := application.missing(links)
		var refusals []error
		for _, pk := range missing.linkedPKs() {
			refusals = append(refusals, fmt.Errorf("provider %d: %w: %s", pk, ErrNotLinked, application.Slug))
		}
		if err := errors.Join(refusals...); err != nil {
			return err
		}
		if links.ProviderPK != nil {
			if err := setProvider(tx, application, nil); err != nil {
				return err
			}
		}
		for _, link := range links.Backchannels {
			if err := tx.Delete(&Backchannel{}, "provider_pk = ?", link.ProviderPK).Error; err != nil {
				return fmt.Errorf("unlink provider %d: %w", link.ProviderPK, err)
			}
		}
		return addLinkEvents(tx, EventProviderUnlinked, links)
	})
}

// relink changes the links of an application in a transaction.
func (s *Store) relink(
	ctx context.Context, doing, slug string, change func(tx *gorm.DB, application Application) error,
) (Application, error) {
	var changed Application
	err := s.database.Write(ctx, func(tx *gorm.DB) error {
		application, err := applicationNamed(tx, slug)
		if err != nil {
			return err
		}
		if err := change(tx, application); err != nil {
			return err
		}
		changed, err = applicationNamed(tx, slug)
		return err
	})
	if err != nil {
		return Application{}, fmt.Errorf("%s: %w", doing, err)
	}
	return changed, nil
}

func setProvider(tx *gorm.DB, application Application, pk *int64) error {
	err := tx.Model(&Application{}).Where("id = ?", application.ID).Update("provider_pk", pk).Error
	if err != nil {
		return fmt.Errorf("set the provider of %s: %w", application.Slug, err)
	}
	return nil
}

// missing returns the links that the application does not have.
func (a Application) missing(links Application) Application {
	missing := Application{ID: a.ID, Slug: a.Slug}
	if pk := links.ProviderPK; pk != nil && (a.ProviderPK == nil || *a.ProviderPK != *pk) {
		missing.ProviderPK = pk
	}
	for _, link := range links.Backchannels {
		isLinkTo := func(other Backchannel) bool { return other.ProviderPK == link.ProviderPK }
		if !slices.ContainsFunc(a.Backchannels, isLinkTo) && !slices.ContainsFunc(missing.Backchannels, isLinkTo) {
			missing.Backchannels = append(missing.Backchannels, Backchannel{ProviderPK: link.ProviderPK})
		}
	}
	return missing
}

// addLinkEvents adds an event for each link of an application.
func addLinkEvents(tx *gorm.DB, event EventKind, application Application) error {
	kinds, events := map[int64]Kind{}, []Event{}
	var providers []Provider
	if err := tx.Select("pk", "kind").Where("pk IN ?", application.linkedPKs()).Find(&providers).Error; err != nil {
		return fmt.Errorf("read linked providers: %w", err)
	}
	for _, provider := range providers {
		kinds[provider.PK] = provider.Kind
	}
	if pk := application.ProviderPK; pk != nil {
		events = append(events, Event{Event: event, Subject: *pk, Kind: kinds[*pk], Fields: FieldNames{"application"}})
	}
	for _, link := range application.Backchannels {
		pk := link.ProviderPK
		events = append(events, Event{Event: event, Subject: pk, Kind: kinds[pk], Fields: FieldNames{"backchannel"}})
	}
	return addEvents(tx, events...)
}

// linkedPKs returns the pks of all linked providers.
func (a Application) linkedPKs() []int64 {
	var pks []int64
	if a.ProviderPK != nil {
		pks = append(pks, *a.ProviderPK)
	}
	for _, link := range a.Backchannels {
		pks = append(pks, link.ProviderPK)
	}
	return pks
}
