package store

import (
	"cmp"
	"errors"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/records"
)

// errKeyExists means that a record with the idempotency key of a create exists.
var errKeyExists = errors.New("a record of the idempotency key exists")

// selectMet selects records of both kinds that have a uid, a client_id or an idempotency key of some creates.
const selectMet = "SELECT pk, uid, created_at, created_by, kind, idempotency_key, client_id FROM providers "

// findMet finds the records with one statement, so that it sees one state of the database.
func findMet(tx *gorm.DB, creates []*create) (found []records.OAuth2Provider, err error) {
	var uids, clientIDs, keys []any
	for _, c := range creates {
		uids, clientIDs = append(uids, c.common.UID), append(clientIDs, records.Optional(c.clientID))
		keys = append(keys, c.common.CreatedBy, c.common.Kind, records.Optional(c.common.IdempotencyKey))
	}
	query := selectMet + "WHERE uid IN ? UNION ALL " + selectMet + "WHERE client_id IN ? UNION ALL " + selectMet +
		"JOIN (VALUES " + strings.Repeat(", (?, ?, ?)", len(uids))[2:] + ") AS keys " +
		"ON created_by = column1 AND kind = column2 AND idempotency_key = column3"
	err = tx.Raw(query, append([]any{uids, clientIDs}, keys...)...).Scan(&found).Error
	return found, err
}

// settle settles a create that was not inserted, unless none of the records explains why.
func (c *create) settle(found []records.OAuth2Provider) {
	isSame := func(wanted *string, other string) bool { return wanted != nil && *wanted == other }
	for _, other := range found {
		switch {
		case other.UID == c.common.UID:
			c.common.PK, c.common.CreatedAt, c.err, c.state = other.PK, other.CreatedAt, nil, settled
			return
		case isSame(c.common.IdempotencyKey, text(other.IdempotencyKey)) &&
			c.common.CreatedBy == other.CreatedBy && c.common.Kind == other.Kind:
			c.err, c.state = errKeyExists, settled
		case isSame(c.clientID, other.ClientID) && !errors.Is(c.err, errKeyExists):
			c.err, c.state = ErrClientIDTaken, settled
		}
	}
}

// text returns a text, "" for none; neither an idempotency key nor a client_id is empty.
func text(optional *string) string { return *cmp.Or(optional, new("")) }
