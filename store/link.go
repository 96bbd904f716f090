package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
)

// Link adds links to an application, all of them or none, and returns it as it is then. Of links it reads Slug,
// ProviderPK and Backchannels. A link that is there stays as it is.
//
// It returns ErrNotFound, ErrWrongKind and ErrProviderLinked as CreateApplication does, ErrApplicationLinked where
// another provider serves the application, or ErrUnavailable, in which case nothing is linked, or ErrOutcomeUnknown.
func (s *Store) Link(ctx context.Context, links Application) (Application, error) {
	return s.relink(ctx, "link application", links.Slug, func(tx *gorm.DB, application Application) error {
		added := application.without(links)
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
		return insertBackchannels(tx, added)
	})
}

// Unlink removes links from an application, all of them or none, and returns it as it is then. Of links it reads Slug,
// ProviderPK and Backchannels.
//
// It returns ErrNotFound for the application, ErrNotLinked for each provider that does not serve it so, or
// ErrUnavailable, in which case nothing is removed, or ErrOutcomeUnknown.
func (s *Store) Unlink(ctx context.Context, links Application) (Application, error) {
	return s.relink(ctx, "unlink application", links.Slug, func(tx *gorm.DB, application Application) error {
		missing := application.without(links)
		var refusals []error
		for _, pk := range missing.links() {
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
		return nil
	})
}

// relink changes the links of the application with a slug.
func (s *Store) relink(
	ctx context.Context, doing, slug string, change func(tx *gorm.DB, application Application) error,
) (Application, error) {
	var changed Application
	err := s.database.Change(ctx, func(tx *gorm.DB) error {
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

func setProvider(tx *gorm.DB, application Application, pk *int32) error {
	err := tx.Model(&Application{}).Where("id = ?", application.ID).Update("provider_pk", pk).Error
	if err != nil {
		return fmt.Errorf("write the provider of %s: %w", application.Slug, err)
	}
	return nil
}

// without returns those of some links that the application does not have.
func (a Application) without(links Application) Application {
	missing := Application{ID: a.ID, Slug: a.Slug}
	if pk := links.ProviderPK; pk != nil && (a.ProviderPK == nil || *a.ProviderPK != *pk) {
		missing.ProviderPK = pk
	}
	for _, link := range links.Backchannels {
		isThere := func(other Backchannel) bool { return other.ProviderPK == link.ProviderPK }
		if !slices.ContainsFunc(a.Backchannels, isThere) && !slices.ContainsFunc(missing.Backchannels, isThere) {
			missing.Backchannels = append(missing.Backchannels, Backchannel{ProviderPK: link.ProviderPK})
		}
	}
	return missing
}

// links returns the pks of all providers that are linked.
func (a Application) links() []int32 {
	var pks []int32
	if a.ProviderPK != nil {
		pks = append(pks, *a.ProviderPK)
	}
	for _, link := range a.Backchannels {
		pks = append(pks, link.ProviderPK)
	}
	return pks
}
