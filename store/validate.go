package store

import (
	"fmt"
	"math"
	"slices"

	"example.com/providerd/store/database"
)

// withoutValidated returns the creates that are not validations, and sets the outcome of the validations. taken holds
// the unique values of validations that are taken.
func (b batch) withoutValidated(tx database.Batch, taken []string) (batch, error) {
	if !slices.ContainsFunc(b, isValidated) {
		return b, nil
	}
	// While creates are refused, a validation must not promise one.
	refusal := tx.CanStore()
	last, err := tx.LastPK()
	if err != nil {
		return nil, fmt.Errorf("read the last pk: %w", err)
	}
	return slices.DeleteFunc(b, func(c *create) bool {
		switch {
		case !c.validateOnly:
			return false
		case refusal != nil:
			c.err = refusal
		case last >= math.MaxInt32:
			c.err = ErrNoPKLeft
		case slices.Contains(taken, c.settings.uniqueValue()):
			c.err = ErrClientIDTaken
		}
		return true
	}), nil
}

func isValidated(c *create) bool { return c.validateOnly }

// takenValues returns the unique values of validations that are taken.
func (b batch) takenValues(tx database.Batch) (taken []string, err error) {
	var wanted []string
	for _, c := range b {
		if value := c.settings.uniqueValue(); c.validateOnly && value != "" {
			wanted = append(wanted, value)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	err = tx.DB().Model(&oauth2Row{}).Where("client_id IN ?", padded(wanted)).Pluck("client_id", &taken).Error
	if err != nil {
		return nil, fmt.Errorf("find client_ids: %w", err)
	}
	return taken, nil
}
