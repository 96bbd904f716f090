package store

import (
	"cmp"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/records"
)

// create is a create in flight.
type create struct {
	requested records.Record
	// common and clientID belong to the record. common is filled in: it has the pk once done is closed and err is nil.
	common   *records.Provider
	clientID *string
	// row holds the columns of the record, sealed with the keys of version.
	row     []any
	version []byte
	// timing is filled in unless it is nil.
	timing *Timing
	// deadline is when its caller gives up; the zero time for a database without deadlines.
	deadline time.Time
	state    state
	// blockedAt is when it was first blocked; the zero time if it has not been.
	blockedAt time.Time
	// claimed is set by the first of the batcher, which starts it, and the caller, which cancels it.
	claimed atomic.Bool
	// done is closed once err is set; nil if the caller inserts the create.
	done chan struct{}
	err  error
}

// state is what remains to be done for a create.
type state int

const (
	// waiting creates are inserted together with others.
	waiting state = iota
	// blocked creates have waited for another transaction, and are inserted alone.
	blocked
	// settled creates have their outcome.
	settled
)

// maxTries is how often a create is tried while others take its key and free it again, or the keys change.
const maxTries = 4

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

// fail settles a create with an error, unless an earlier statement may have stored it.
func (c *create) fail(err error) {
	if c.state = settled; !errors.Is(c.err, ErrOutcomeUnknown) {
		c.err = err
	}
}

func isBlocked(c *create) bool { return c.state == blocked }

func isSettled(c *create) bool { return c.state == settled }

// text returns a text, "" for none; neither an idempotency key nor a client_id is empty.
func text(optional *string) string { return *cmp.Or(optional, new("")) }
