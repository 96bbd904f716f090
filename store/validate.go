package store

import (
	"fmt"
	"math"
	"slices"

	"example.com/providerd/store/database"
)

// withoutValidated leaves out the creates that are only validated, of whose unique values some are taken, and gives
// them the outcome that they would have.
func (b batch) withoutValidated(tx database.Batch, taken []string) (batch, error) {
	if !slices.ContainsFunc(b, isValidated) {
		return b, nil
	}
	// While creates are refused, a validation must not promise that one is stored.
	refusal := tx.CanStore()
	last, err := tx.LastPK()
	if err != nil {
		return nil, fmt.Errorf("look whether a pk is left: %w", err)
	}
	return slices.DeleteFunc(b, func(one *create) bool {
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
func (b batch) takenValues(tx database.Batch) (taken []string, err error) {
	var wanted []string
	for _, one := range b {
		if value := one.settings.uniqueValue(); one.validateOnly && value != "" {
			wanted = append(wanted, value)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	err = tx.DB().Model(&oauth2Row{}).Where("client_id IN ?", padded(wanted)).Pluck("client_id", &taken).Error
	if err != nil {
		return nil, fmt.Errorf("look up client_ids: %w", err)
	}
	return taken, nil
}
