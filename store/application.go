package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"gorm.io/gorm"
)

// CreateApplication stores an application with its links and returns it. ID is ignored.
//
// It returns ErrSlugTaken, ErrNotFound for a provider that does not exist, ErrWrongKind if ProviderPK is not an OAuth2
// provider, ErrProviderLinked, or ErrUnavailable; nothing is stored then.
func (s *Store) CreateApplication(ctx context.Context, application Application) (Application, error) {
	var created Application
	err := s.database.Write(ctx, func(tx *gorm.DB) error {
		if err := checkLinks(tx, application); err != nil {
			return err
		}
		created = application
		created.ID = 0
		created.Backchannels = slices.Clone(application.Backchannels)
		return insertApplication(tx, &created)
	})
	if err != nil {
		return Application{}, fmt.Errorf("create application: %w", err)
	}
	return created, nil
}

// insertApplication inserts the links separately, because GORM ignores conflicts of associations.
func insertApplication(tx *gorm.DB, application *Application) error {
	err := tx.Omit("Backchannels").Create(application).Error
	if isDuplicate(err) {
		return fmt.Errorf("%w: %s", ErrSlugTaken, application.Slug)
	}
	if err != nil {
		return err
	}
	if err := insertBackchannels(tx, *application); err != nil {
		return err
	}
	return addLinkEvents(tx, EventProviderLinked, *application)
}

func insertBackchannels(tx *gorm.DB, application Application) error {
	for i := range application.Backchannels {
		link := &application.Backchannels[i]
		link.ApplicationID = application.ID
		err := tx.Omit("Application").Create(link).Error
		if isDuplicate(err) {
			return fmt.Errorf("provider %d: %w: %s", link.ProviderPK, ErrProviderLinked, application.Slug)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLinks reports which provider cannot be linked and why; a violated constraint reports neither.
func checkLinks(tx *gorm.DB, application Application) error {
	if pk := application.ProviderPK; pk != nil {
		provider, err := linkable(tx, *pk)
		if err != nil {
			return err
		}
		if provider.Kind != KindOAuth2 {
			return fmt.Errorf("provider %d: %w: only an OAuth2 provider can serve an application; others can be backchannels",
				*pk, ErrWrongKind)
		}
		if provider.Application.ID != 0 {
			return fmt.Errorf("provider %d: %w: %s", *pk, ErrProviderLinked, provider.Application.Slug)
		}
	}
	for _, link := range application.Backchannels {
		provider, err := linkable(tx, link.ProviderPK)
		if err != nil {
			return err
		}
		if linked := provider.Backchannel.Application; linked.ID != 0 {
			return fmt.Errorf("provider %d: %w: %s", link.ProviderPK, ErrProviderLinked, linked.Slug)
		}
	}
	return nil
}

func linkable(tx *gorm.DB, pk int64) (Provider, error) {
	providers := make([]Provider, 1)
	if err := tx.Take(&providers[0], pk).Error; err != nil {
		return Provider{}, fmt.Errorf("provider %d: %w", pk, found(err))
	}
	return providers[0], addApplications(tx, providers)
}

// Applications returns all applications with their backchannels, oldest first. On ErrUnavailable the sequence ends.
func (s *Store) Applications(ctx context.Context) iter.Seq2[Application, error] {
	return pages(func(last *Application) ([]Application, error) {
		query := s.reader(ctx).Preload("Backchannels")
		if last != nil {
			query = query.Where("id > ?", last.ID)
		}
		var page []Application
		if err := query.Order("id").Limit(pageSize).Find(&page).Error; err != nil {
			return nil, fmt.Errorf("read applications: %w", err)
		}
		return page, nil
	})
}

// DeleteApplications deletes applications and their links, all or none. The providers stay.
//
// It returns ErrNotFound for each application that does not exist, or ErrUnavailable; nothing is deleted then. It can
// also return ErrOutcomeUnknown.
func (s *Store) DeleteApplications(ctx context.Context, slugs []string) error {
	err := s.database.Write(ctx, func(tx *gorm.DB) error {
		var refusals []error
		for _, slug := range slices.Compact(slices.Sorted(slices.Values(slugs))) {
			refusals = append(refusals, deleteApplication(tx, slug))
		}
		return errors.Join(refusals...)
	})
	if err != nil {
		return fmt.Errorf("delete applications: %w", err)
	}
	return nil
}

func deleteApplication(tx *gorm.DB, slug string) error {
	application, err := applicationNamed(tx, slug)
	if err != nil {
		return err
	}
	if err := tx.Delete(&Backchannel{}, "application_id = ?", application.ID).Error; err != nil {
		return fmt.Errorf("delete links: %w", err)
	}
	if err := tx.Delete(&application).Error; err != nil {
		return fmt.Errorf("delete application %s: %w", slug, err)
	}
	return addLinkEvents(tx, EventProviderUnlinked, application)
}

func applicationNamed(tx *gorm.DB, slug string) (Application, error) {
	var application Application
	if err := tx.Preload("Backchannels").Where("slug = ?", slug).Take(&application).Error; err != nil {
		return Application{}, fmt.Errorf("application %s: %w", slug, found(err))
	}
	return application, nil
}
