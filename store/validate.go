package store

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// ValidateOAuth2Provider decides what CreateOAuth2Provider would do at the same moment, and stores nothing, not even
// the key. It returns the pk of the record that the key made before; 0 where a record would be made.
//
// It returns ErrClientIDTaken, ErrKeyReused, ErrOverloaded, ErrNoPKLeft, ErrDamaged for the record that the key made
// before, or ErrUnavailable.
func (s *Store) ValidateOAuth2Provider(
	ctx context.Context, request CreateRequest, settings OAuth2Settings,
) (madeBefore int32, err error) {
	return validate[OAuth2Provider](ctx, s, newCreate(request, &settings))
}

// ValidateWorkspaceDirectoryProvider decides what CreateWorkspaceDirectoryProvider would do at the same moment, and
// stores nothing, not even the key. It returns the pk of the record that the key made before; 0 where a record would be
// made.
//
// It returns ErrKeyReused, ErrOverloaded, ErrNoPKLeft, ErrDamaged for the record that the key made before, or
// ErrUnavailable.
func (s *Store) ValidateWorkspaceDirectoryProvider(
	ctx context.Context, request CreateRequest, settings WorkspaceDirectorySettings,
) (madeBefore int32, err error) {
	return validate[WorkspaceDirectoryProvider](ctx, s, newCreate(request, &settings))
}

// validate lets a create go the way of all creates, as far as it is decided: so it waits as they do, and what it finds
// stored is stored for good. A record that cannot be replayed refuses it, too.
func validate[R Record](ctx context.Context, s *Store, one *create) (madeBefore int32, err error) {
	one.validateOnly = true
	err = s.batcher.submit(ctx, one)
	if err == nil && one.replays != 0 {
		_, _, err = replay[R](ctx, s, one)
	}
	if err != nil {
		return 0, fmt.Errorf("validate %s provider: %w", one.creation.Kind, err)
	}
	return one.replays, nil
}

// withoutDecided leaves out the creates for which nothing is to be written: replays, and those that are only validated.
func (i insertion) withoutDecided(creates batch) (batch, error) {
	// This comes before the keys: where another program commits a create with both meanwhile, whoever finds the client_id
	// taken finds the key, too.
	taken, err := i.takenValues(creates)
	if err != nil {
		return nil, err
	}
	rest, err := i.withoutReplays(creates)
	if err != nil || !slices.ContainsFunc(rest, isValidated) {
		return rest, err
	}
	// While creates are refused, a validation must not promise that one is stored.
	refusal := i.database.CanStore(i.tx)
	last, err := i.database.LastPK(i.tx)
	if err != nil {
		return nil, fmt.Errorf("look whether a pk is left: %w", err)
	}
	return slices.DeleteFunc(rest, func(one *create) bool {
		switch {
		case !one.validateOnly:
			return false
		case refusal != nil:
			one.err = refusal
		case last >= math.MaxInt32:
			one.err = ErrNoPKLeft
		case slices.Contains(taken, one.settings.uniqueValue()):
			one.err = ErrClientIDTaken
		}
		return true
	}), nil
}

func isValidated(one *create) bool { return one.validateOnly }

// takenValues returns which of the unique values are taken of creates that are only validated.
func (i insertion) takenValues(creates batch) (taken []string, err error) {
	var wanted []string
	for _, one := range creates {
		if value := one.settings.uniqueValue(); one.validateOnly && value != "" {
			wanted = append(wanted, value)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	err = i.tx.Model(&oauth2Row{}).Where("client_id IN ?", padded(wanted)).Pluck("client_id", &taken).Error
	if err != nil {
		return nil, fmt.Errorf("look up client_ids: %w", err)
	}
	return taken, nil
}
