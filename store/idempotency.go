package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// idempotencyScope is what an idempotency key is unique in, with the key.
type idempotencyScope struct {
	createdBy string
	kind      Kind
	key       string
}

func (c Creation) idempotencyScope() (scope idempotencyScope, hasKey bool) {
	if c.IdempotencyKey == nil {
		return idempotencyScope{}, false
	}
	return idempotencyScope{createdBy: c.CreatedBy, kind: c.Kind, key: *c.IdempotencyKey}, true
}

// isOf tells whether a record was made with a key in this scope.
func (s idempotencyScope) isOf(record Record) bool {
	scope, hasKey := record.Common().idempotencyScope()
	return hasKey && scope == s
}

// compareScope orders creations by their idempotency keys, those without one first.
func (c Creation) compareScope(other Creation) int {
	a, _ := c.idempotencyScope()
	b, _ := other.idempotencyScope()
	return cmp.Or(cmp.Compare(a.createdBy, b.createdBy), cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key))
}

// ErrKeyReused says that the caller used the idempotency key for another body before. It comes as a KeyReusedError.
var ErrKeyReused = errors.New("idempotency key was used for another body")

// KeyReusedError is ErrKeyReused with the record that the key made.
type KeyReusedError struct {
	// PK is that of the record.
	PK    int32
	scope idempotencyScope
}

// Error describes the error for the log.
func (e *KeyReusedError) Error() string { return fmt.Sprintf("%v, provider %d", ErrKeyReused, e.PK) }

// Unwrap returns ErrKeyReused.
func (e *KeyReusedError) Unwrap() error { return ErrKeyReused }

// withoutReplays leaves out the creates whose key made a record before, and says which.
func (b batch) withoutReplays(tx database.Batch, keys *seal.Keys) (batch, error) {
	made, err := b.priorRecords(tx)
	if err != nil || len(made) == 0 {
		return slices.Clone(b), err
	}
	before := map[idempotencyScope]Creation{}
	for _, one := range made {
		scope, _ := one.idempotencyScope()
		before[scope] = one
	}
	return slices.DeleteFunc(slices.Clone(b), func(one *create) bool {
		scope, hasKey := one.creation.idempotencyScope()
		first, ok := before[scope]
		if !hasKey || !ok {
			return false
		}
		one.replays = first.PK
		if !keys.Matches(first.Fingerprint, one.digest) {
			one.err = &KeyReusedError{PK: first.PK, scope: scope}
		}
		return true
	}), nil
}

// priorRecords returns the records that the keys of some creates made. A subquery for each key is one search in the
// index of the keys, whatever the database believes of the size of the table; a list of keys is planned each time, or
// read the table instead.
func (b batch) priorRecords(tx database.Batch) ([]Creation, error) {
	var scopes [][]any
	for _, one := range b {
		if scope, ok := one.creation.idempotencyScope(); ok {
			scopes = append(scopes, []any{scope.createdBy, scope.kind, scope.key})
		}
	}
	if len(scopes) == 0 {
		return nil, nil
	}
	scopes = padded(scopes)
	const search = "coalesce((SELECT pk FROM providers WHERE created_by = column1 AND kind = column2 " +
		"AND idempotency_key = column3), 0)"
	var pks []int32
	list := "(VALUES " + strings.Repeat("(?,?,?),", len(scopes)-1) + "(?,?,?)) AS scopes"
	if err := tx.DB().Table(list, slices.Concat(scopes...)...).Pluck(search, &pks).Error; err != nil {
		return nil, fmt.Errorf("look up idempotency keys: %w", err)
	}
	pks = slices.DeleteFunc(pks, func(pk int32) bool { return pk == 0 })
	if len(pks) == 0 {
		return nil, nil
	}
	var made []Creation
	err := tx.DB().Select("pk", "created_by", "kind", "idempotency_key", "fingerprint").
		Where("pk IN ?", padded(pks)).Find(&made).Error
	if err != nil {
		return nil, fmt.Errorf("read the records of idempotency keys: %w", err)
	}
	return made, nil
}

// addFingerprint lets the body of the create be known again by who has the keys, where it has an idempotency key.
func (c *create) addFingerprint(keys *seal.Keys) (err error) {
	if c.digest == nil {
		return nil
	}
	if c.creation.Fingerprint, err = keys.Fingerprint(c.digest); err != nil {
		return fmt.Errorf("make fingerprint: %w", err)
	}
	return nil
}
