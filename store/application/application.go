// Package application holds the applications that providers are linked to. It changes no provider.
//
// Start with Applications.
package application

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/records"
	"example.com/providerd/store/rows"
)

var (
	// ErrSlugTaken means that an application has the slug.
	ErrSlugTaken = errors.New("slug is taken by an application")
	// ErrProviderLinked means that the provider already serves another application.
	ErrProviderLinked = errors.New("provider is linked to another application")
	// ErrLinked means that another provider already serves the application.
	ErrLinked = errors.New("application is linked to another provider")
	// ErrNotLinked means that the provider does not serve the application in this role.
	ErrNotLinked = errors.New("provider is not linked to the application")
	// ErrWrongKind means that a provider of this kind cannot have the requested role.
	ErrWrongKind = errors.New("provider is of the wrong kind")
)

// Applications are the applications of a database, with their links to providers.
type Applications struct{ database database.Database }

// New returns the applications of a database.
func New(db database.Database) *Applications { return &Applications{database: db} }

// Create stores an application with its links and returns it. ID is ignored.
//
// It returns ErrSlugTaken, ErrNotFound for a provider that does not exist, ErrWrongKind if ProviderPK is not an OAuth2
// provider, ErrProviderLinked, or ErrUnavailable; nothing is stored then.
func (a *Applications) Create(ctx context.Context, application records.Application) (records.Application, error) {
	return a.relink(ctx, "create application", application.Slug, func(tx *gorm.DB) error {
		created := records.Application{Slug: application.Slug, Name: application.Name}
		if err := tx.Create(&created).Error; errors.Is(err, gorm.ErrDuplicatedKey) {
			return fmt.Errorf("%w: %s", ErrSlugTaken, application.Slug)
		} else if err != nil {
			return err
		}
		return addLinks(tx, created, missing(created, application))
	})
}

// Link adds links to an application, all or none, and returns the changed application. It reads Slug, ProviderPK and
// Backchannels of links. Existing links stay.
//
// It returns ErrNotFound, ErrWrongKind and ErrProviderLinked as Create does, ErrLinked if another
// provider serves the application, or ErrUnavailable; nothing is linked then. It can also return ErrOutcomeUnknown.
func (a *Applications) Link(ctx context.Context, links records.Application) (records.Application, error) {
	return a.relink(ctx, "link application", links.Slug, func(tx *gorm.DB) error {
		application, err := applicationNamed(tx, links.Slug)
		if err != nil {
			return err
		}
		return addLinks(tx, application, missing(application, links))
	})
}

// addLinks adds links that the application does not have.
func addLinks(tx *gorm.DB, application, added records.Application) error {
	if err := checkLinks(tx, added); err != nil {
		return err
	}
	if pk := added.ProviderPK; pk != nil {
		if serving := application.ProviderPK; serving != nil {
			return fmt.Errorf("%s: %w: %d", application.Slug, ErrLinked, *serving)
		}
		if err := tx.Model(&application).Update("provider_pk", pk).Error; err != nil {
			return err
		}
	}
	// GORM would ignore conflicts if it added them to the application.
	if len(added.Backchannels) > 0 {
		if err := tx.Omit("Application").Create(&added.Backchannels).Error; err != nil {
			return err
		}
	}
	return addLinkEvents(tx, event.ProviderLinked, added)
}

// Unlink removes links from an application, all or none, and returns the changed application. It reads Slug, ProviderPK
// and Backchannels of links.
//
// It returns ErrNotFound for the application, ErrNotLinked for each provider that is not linked in this role, or
// ErrUnavailable; nothing is removed then. It can also return ErrOutcomeUnknown.
func (a *Applications) Unlink(ctx context.Context, links records.Application) (records.Application, error) {
	return a.relink(ctx, "unlink application", links.Slug, func(tx *gorm.DB) error {
		application, err := applicationNamed(tx, links.Slug)
		if err != nil {
			return err
		}
		var refusals []error
		for pk := range missing(application, links).Links() {
			refusals = append(refusals, fmt.Errorf("provider %d: %w: %s", pk, ErrNotLinked, application.Slug))
		}
		if err := errors.Join(refusals...); err != nil {
			return err
		}
		return removeLinks(tx, application, links)
	})
}

func removeLinks(tx *gorm.DB, application, removed records.Application) error {
	if removed.ProviderPK != nil {
		if err := tx.Model(&application).Update("provider_pk", nil).Error; err != nil {
			return err
		}
	}
	for _, link := range removed.Backchannels {
		if err := tx.Delete(&records.Backchannel{}, "provider_pk = ?", link.ProviderPK).Error; err != nil {
			return err
		}
	}
	return addLinkEvents(tx, event.ProviderUnlinked, removed)
}

func (a *Applications) relink(
	ctx context.Context, doing, slug string, change func(tx *gorm.DB) error,
) (changed records.Application, err error) {
	err = a.database.Write(ctx, func(tx *gorm.DB) (err error) {
		if err = change(tx); err == nil {
			changed, err = applicationNamed(tx, slug)
		}
		return err
	})
	return changed, database.Wrap(doing, err)
}

// missing returns the links that an application does not have.
func missing(a, links records.Application) records.Application {
	missing := records.Application{ID: a.ID, Slug: a.Slug}
	if pk := links.ProviderPK; pk != nil && (a.ProviderPK == nil || *a.ProviderPK != *pk) {
		missing.ProviderPK = pk
	}
	for _, link := range links.Backchannels {
		isLinkTo := func(other records.Backchannel) bool { return other.ProviderPK == link.ProviderPK }
		if !slices.ContainsFunc(a.Backchannels, isLinkTo) && !slices.ContainsFunc(missing.Backchannels, isLinkTo) {
			link.ApplicationID = a.ID
			missing.Backchannels = append(missing.Backchannels, link)
		}
	}
	return missing
}

// checkLinks reports which provider cannot be linked and why; a violated constraint reports neither.
func checkLinks(tx *gorm.DB, application records.Application) error {
	for pk, role := range application.Links() {
		providers := make([]records.Provider, 1)
		if err := tx.Take(&providers[0], pk).Error; err != nil {
			return fmt.Errorf("provider %d: %w", pk, err)
		}
		if err := records.AddApplications(tx, providers); err != nil {
			return err
		}
		linked := providers[0].Backchannel.Application
		if role == records.RoleApplication {
			linked = providers[0].Application
		}
		switch {
		case role == records.RoleApplication && providers[0].Kind != records.KindOAuth2:
			return fmt.Errorf("provider %d: %w: only an OAuth2 provider can serve an application; others can be backchannels",
				pk, ErrWrongKind)
		case linked.ID != 0:
			return fmt.Errorf("provider %d: %w: %s", pk, ErrProviderLinked, linked.Slug)
		}
	}
	return nil
}

func addLinkEvents(tx *gorm.DB, linked event.Type, application records.Application) error {
	var events []event.Event
	for pk, role := range application.Links() {
		provider := records.Provider{PK: pk}
		if err := tx.Select("kind").Take(&provider).Error; err != nil {
			return err
		}
		events = append(events, event.Event{
			Event: linked, Subject: pk, Kind: string(provider.Kind), Fields: event.FieldNames{role},
		})
	}
	return event.Add(tx, events...)
}

// withBackchannels reads the backchannels of applications too, by provider.
func withBackchannels(tx *gorm.DB) *gorm.DB {
	return tx.Preload("Backchannels", func(links *gorm.DB) *gorm.DB { return links.Order("provider_pk") })
}

// List returns all applications with their backchannels, oldest first. On ErrUnavailable the sequence ends.
func (a *Applications) List(ctx context.Context) iter.Seq2[records.Application, error] {
	all := withBackchannels(a.database.Reader().WithContext(ctx))
	return rows.Pages(all, "id", 0, func(a records.Application) int64 { return a.ID }, rows.Find)
}

// Delete deletes applications and their links, all or none. The providers stay.
//
// It returns ErrNotFound for each application that does not exist, or ErrUnavailable; nothing is deleted then. It can
// also return ErrOutcomeUnknown.
func (a *Applications) Delete(ctx context.Context, slugs []string) error {
	err := a.database.Write(ctx, func(tx *gorm.DB) error {
		var refusals []error
		for _, slug := range slices.Compact(slices.Sorted(slices.Values(slugs))) {
			refusals = append(refusals, deleteApplication(tx, slug))
		}
		return errors.Join(refusals...)
	})
	return database.Wrap("delete applications", err)
}

func deleteApplication(tx *gorm.DB, slug string) error {
	application, err := applicationNamed(tx, slug)
	if err != nil {
		return err
	}
	if err := removeLinks(tx, application, application); err != nil {
		return err
	}
	return tx.Delete(&application).Error
}

func applicationNamed(tx *gorm.DB, slug string) (records.Application, error) {
	var application records.Application
	err := withBackchannels(tx).Where("slug = ?", slug).Take(&application).Error
	return application, database.Wrap("application "+slug, err)
}
