package store

import (
	"fmt"
	"math"
	"slices"
)

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
	refusal := i.CanStore()
	last, err := i.LastPK()
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
	err = i.DB().Model(&oauth2Row{}).Where("client_id IN ?", padded(wanted)).Pluck("client_id", &taken).Error
	if err != nil {
		return nil, fmt.Errorf("look up client_ids: %w", err)
	}
	return taken, nil
}
