package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// errKeyExists means that a record with the idempotency key of a create exists.
var errKeyExists = errors.New("a record of the idempotency key exists")

// met holds the records that have a uid, a client_id or an idempotency key of some creates.
type met struct {
	uids      map[uuid.UUID]Provider
	clientIDs map[string]bool
	keys      map[keyScope]bool
}

// keyScope is an idempotency key and what it belongs to.
type keyScope struct {
	createdBy string
	kind      Kind
	key       string
}

// selectMet selects records with the unique values of creates.
const selectMet = "SELECT pk, uid, created_at, created_by, kind, idempotency_key, client_id FROM providers "

// findMet finds the records with one statement, so that it sees one state of the database.
func findMet(tx *gorm.DB, creates []*create) (met, error) {
	var uids, clientIDs, keys []any
	for _, c := range creates {
		uids, clientIDs = append(uids, c.common.UID), append(clientIDs, optional(c.clientID))
		keys = append(keys, c.common.CreatedBy, c.common.Kind, optional(c.common.IdempotencyKey))
	}
	query := selectMet + "WHERE uid IN ? UNION ALL " + selectMet + "WHERE client_id IN ? UNION ALL " + selectMet +
		"JOIN (VALUES " + strings.Repeat(", (?, ?, ?)", len(uids))[2:] + ") AS keys " +
		"ON created_by = column1 AND kind = column2 AND idempotency_key = column3"
	var rows []struct {
		Provider `gorm:"embedded"`
		ClientID *string
	}
	if err := tx.Raw(query, append([]any{uids, clientIDs}, keys...)...).Scan(&rows).Error; err != nil {
		return met{}, fmt.Errorf("find unique values: %w", err)
	}
	found := met{uids: map[uuid.UUID]Provider{}, clientIDs: map[string]bool{}, keys: map[keyScope]bool{}}
	for _, row := range rows {
		found.uids[row.UID] = row.Provider
		if row.ClientID != nil {
			found.clientIDs[*row.ClientID] = true
		}
		if row.IdempotencyKey != nil {
			found.keys[keyScope{row.CreatedBy, row.Kind, *row.IdempotencyKey}] = true
		}
	}
	return found, nil
}

// outcome sets the outcome of a create that was not inserted, and reports whether there is one.
func (m met) outcome(c *create) bool {
	key := c.common.IdempotencyKey
	stored, isStored := m.uids[c.common.UID]
	switch {
	case isStored:
		c.common.PK, c.common.CreatedAt, c.err = stored.PK, stored.CreatedAt, nil
	case key != nil && m.keys[keyScope{c.common.CreatedBy, c.common.Kind, *key}]:
		c.err = errKeyExists
	case c.clientID != nil && m.clientIDs[*c.clientID]:
		c.err = ErrClientIDTaken
	default:
		return false
	}
	return true
}
