package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/records"
)

// CreateRequest holds what a create has in addition to its settings.
type CreateRequest struct {
	// Name of the provider; not unique.
	Name string
	// Generated says which of the settings the caller omitted, so that the server chose them.
	Generated records.Generated
	// CreatedBy is the caller: the name of the access token.
	CreatedBy string
	// RequestID is the X-Request-Id of the HTTP request.
	RequestID string
	// IdempotencyKey lets a retry find the first attempt's record; nil for none. It belongs to the caller and the kind.
	IdempotencyKey *string
	// RemoteAddress is the IP address of the client.
	RemoteAddress string
	// ValidateOnly makes a create find its outcome and store nothing, not even the key.
	ValidateOnly bool
	// Timing, if not nil, is filled in even if the create is refused.
	Timing *Timing
	// Reserve is called with the length of the record of the idempotency key before that is read, with an error if there
	// is no memory for it; nil if all of them fit.
	Reserve func(length int64) error
}

// KeyReusedError means that the caller already used the idempotency key for another request.
type KeyReusedError struct {
	// PK is the pk of the record.
	PK int64
	// Fields are the names of the fields that differ.
	Fields []string
}

// Error names the provider that the key created.
func (e *KeyReusedError) Error() string {
	return fmt.Sprintf("idempotency key was used for another request, provider %d", e.PK)
}

// CreateOAuth2 stores a provider and returns its record once it is on disk. If the idempotency key already created a
// record from an equal request, it returns that record with replayed set. With ValidateOnly, it returns the same
// outcome but stores nothing; a record that would be created has no pk.
//
// It returns ErrClientIDTaken, a KeyReusedError, ErrOverloaded, ErrUnavailable, the error of Reserve, or ErrDamaged if
// the record of the key cannot be read; nothing is stored then. It may be with ErrOutcomeUnknown.
func (p *Providers) CreateOAuth2(
	ctx context.Context, request CreateRequest, settings records.OAuth2Settings,
) (record records.OAuth2Provider, replayed bool, err error) {
	requested := records.OAuth2Provider{Provider: request.provider(records.KindOAuth2), OAuth2Settings: settings}
	return createAs(ctx, p, request, &requested, &requested.Provider)
}

// CreateWorkspaceDirectory is CreateOAuth2 for the other kind, which has no client_id that could be taken.
func (p *Providers) CreateWorkspaceDirectory(
	ctx context.Context, request CreateRequest, settings records.WorkspaceDirectorySettings,
) (record records.WorkspaceDirectoryProvider, replayed bool, err error) {
	requested := records.WorkspaceDirectoryProvider{
		Provider: request.provider(records.KindWorkspaceDirectory), WorkspaceDirectorySettings: settings,
	}
	return createAs(ctx, p, request, &requested, &requested.Provider)
}

// createAs stores a record of a kind, or returns the one that the idempotency key already created.
func createAs[R records.Record](
	ctx context.Context, p *Providers, request CreateRequest, requested *R, common *records.Provider,
) (record R, replayed bool, err error) {
	prior, err := p.create(ctx, request, any(requested).(records.Record), common)
	if err != nil {
		return record, false, fmt.Errorf("create %s provider: %w", common.Kind, err)
	}
	if prior != nil {
		return prior.(R), true, nil
	}
	return *requested, false, nil
}

// provider returns what the request has in common with requests for the other kind, with a new uid.
func (r CreateRequest) provider(kind records.Kind) records.Provider {
	return records.Provider{
		UID: uuid.Must(uuid.NewV7()), Kind: kind, Name: r.Name, CreatedBy: r.CreatedBy, RequestID: r.RequestID,
		RemoteAddress: r.RemoteAddress, IdempotencyKey: r.IdempotencyKey, Generated: r.Generated,
	}
}

// create stores a record, and fills in what the records of both kinds have in common. If the idempotency key
// already created a record, it returns that one instead.
func (p *Providers) create(
	ctx context.Context, request CreateRequest, requested records.Record, common *records.Provider,
) (prior records.Record, err error) {
	// What this hint misses, the insert finds.
	isKnown := common.IdempotencyKey != nil && !request.ValidateOnly &&
		p.database.SeesKey(ctx, common.CreatedBy, string(common.Kind), *common.IdempotencyKey)
	for range maxTries {
		if isKnown {
			if prior, err = p.replay(ctx, requested, request); prior != nil || err != nil {
				return prior, err
			}
		}
		c := &create{requested: requested, common: common, clientID: requested.UniqueClientID(), timing: request.Timing}
		if request.ValidateOnly {
			err = p.validate(ctx, c)
		} else {
			err = p.batcher.submit(ctx, c)
		}
		if !errors.Is(err, errKeyExists) {
			return nil, err
		}
		isKnown = true
	}
	return nil, fmt.Errorf("%w: other requests keep creating and deleting the record of the idempotency key",
		ErrUnavailable)
}

// replay returns the record that the request's idempotency key created, or nil, or a KeyReusedError if they differ.
func (p *Providers) replay(
	ctx context.Context, requested records.Record, request CreateRequest,
) (record records.Record, err error) {
	common := requested.Common()
	const ofKey = "created_by = ? AND kind = ? AND idempotency_key = ?"
	key := []any{common.CreatedBy, common.Kind, *common.IdempotencyKey}
	err = p.database.Read(ctx, func(tx *gorm.DB) error {
		if err := request.reserve(tx.Where(ofKey, key...), requested); err != nil {
			return err
		}
		record, err = p.openedIn(tx.Where(ofKey, key...), "record")
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the idempotency key: %w", err)
	}
	if records.MustNormalize(record, requested) {
		if err := p.normalizing.Acquire(ctx, 1); err != nil {
			return nil, gaveUp(err)
		}
		defer p.normalizing.Release(1)
	}
	fields, err := records.Differing(record, requested)
	if len(fields) > 0 && err == nil {
		err = &KeyReusedError{PK: record.Common().PK, Fields: fields}
	}
	return record, err
}

// reserve reserves memory for the record that a query selects, which has the columns of the requested one.
func (r CreateRequest) reserve(query *gorm.DB, requested records.Record) error {
	if r.Reserve == nil {
		return nil
	}
	terms := []string{"octet_length(secret)", "octet_length(name)"}
	for _, column := range records.Settings(requested, nil) {
		terms = append(terms, "coalesce(octet_length(CAST("+column.Name+" AS text)), 0)")
	}
	// It stays 0 if the record was deleted.
	var length int64
	if err := query.Model(&records.Provider{}).Select(strings.Join(terms, " + ")).Scan(&length).Error; err != nil {
		return fmt.Errorf("measure the record: %w", err)
	}
	return r.Reserve(length)
}

// validate returns the error that an insert of the create would return.
func (p *Providers) validate(ctx context.Context, c *create) error {
	taken, err := p.database.Find(ctx, database.Unique{
		CreatedBy: c.common.CreatedBy, Kind: string(c.common.Kind),
		IdempotencyKey: text(c.common.IdempotencyKey), ClientID: text(c.clientID),
	})
	if taken.IdempotencyKey {
		return errKeyExists
	}
	if err == nil {
		_, err = p.keys.Fresh(ctx)
	}
	if err == nil && taken.ClientID {
		err = ErrClientIDTaken
	}
	return err
}
