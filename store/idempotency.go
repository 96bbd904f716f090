package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// idempotencyScope identifies an idempotency key: keys are unique per caller and kind.
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

// created reports whether the key created a record.
func (s idempotencyScope) created(record Record) bool {
	scope, hasKey := record.Common().idempotencyScope()
	return hasKey && scope == s
}

// compareScope orders creations by their idempotency keys, those without one first.
func (c Creation) compareScope(other Creation) int {
	a, _ := c.idempotencyScope()
	b, _ := other.idempotencyScope()
	return cmp.Or(cmp.Compare(a.createdBy, b.createdBy), cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key))
}

// ErrKeyReused means that the caller already used the idempotency key with a different body. It is returned as a
// KeyReusedError.
var ErrKeyReused = errors.New("idempotency key was used with a different body")

// KeyReusedError is ErrKeyReused with the record that the key created.
type KeyReusedError struct {
	// PK is the pk of the record.
	PK int32
	// IsUpdated is true if the record was updated since. Then a body counts as the same if it means the same.
	IsUpdated bool
	scope     idempotencyScope
}

// Error names the provider that the key created.
func (e *KeyReusedError) Error() string { return fmt.Sprintf("%v, provider %d", ErrKeyReused, e.PK) }

// Unwrap returns ErrKeyReused.
func (e *KeyReusedError) Unwrap() error { return ErrKeyReused }

// withoutReplays returns the creates that are not replays. It sets replays, and err for another body, on the others.
func (b batch) withoutReplays(tx database.Batch, keys *seal.Keys) (batch, error) {
	prior, err := b.priorRecords(tx)
	if err != nil || len(prior) == 0 {
		return slices.Clone(b), err
	}
	priorOf := map[idempotencyScope]Creation{}
	for _, creation := range prior {
		scope, _ := creation.idempotencyScope()
		priorOf[scope] = creation
	}
	return slices.DeleteFunc(slices.Clone(b), func(c *create) bool {
		scope, hasKey := c.creation.idempotencyScope()
		first, ok := priorOf[scope]
		if !hasKey || !ok {
			return false
		}
		c.replays = first.PK
		if !keys.Matches(first.Fingerprint, c.digest) {
			c.err = &KeyReusedError{PK: first.PK, IsUpdated: first.Fingerprint == nil, scope: scope}
		}
		return true
	}), nil
}

// priorRecords returns the records that the idempotency keys of the creates already created. A subquery for each key is
// one index search, whatever the statistics of the table say. With a list of keys, the database plans each statement
// anew and may scan the table.
func (b batch) priorRecords(tx database.Batch) ([]Creation, error) {
	var scopes [][]any
	for _, c := range b {
		if scope, ok := c.creation.idempotencyScope(); ok {
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
		return nil, fmt.Errorf("find idempotency keys: %w", err)
	}
	pks = slices.DeleteFunc(pks, func(pk int32) bool { return pk == 0 })
	if len(pks) == 0 {
		return nil, nil
	}
	var records []Creation
	err := tx.DB().Select("pk", "created_by", "kind", "idempotency_key", "fingerprint").
		Where("pk IN ?", padded(pks)).Find(&records).Error
	if err != nil {
		return nil, fmt.Errorf("read records of idempotency keys: %w", err)
	}
	return records, nil
}

// addFingerprint sets the fingerprint of the body, which a retry is compared with, if there is an idempotency key.
func (c *create) addFingerprint(keys *seal.Keys) (err error) {
	if c.digest == nil {
		return nil
	}
	if c.creation.Fingerprint, err = keys.Fingerprint(c.digest); err != nil {
		return fmt.Errorf("compute fingerprint: %w", err)
	}
	return nil
}

// IsBodyOf reports whether a retry with this digest of its body replays the record. It returns ErrUnavailable.
func (s *Store) IsBodyOf(ctx context.Context, digest []byte, record Record) (bool, error) {
	keys, err := s.keys.current(s.reader(ctx))
	if err != nil {
		return false, fmt.Errorf("compare fingerprint: %w", err)
	}
	return keys.Matches(record.Common().Fingerprint, digest), nil
}
