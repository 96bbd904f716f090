package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"example.com/providerd/store/seal"
)

// maxNamedKeys limits how many keys an error names.
const maxNamedKeys = 16

// KeyUse is the number of secrets sealed with a key.
type KeyUse struct {
	ID      uint32
	Secrets int64
}

// ErrKeysInUse means that keys cannot be retired because secrets are sealed with them. It is returned as a
// KeysInUseError.
var ErrKeysInUse = errors.New("secrets are encrypted with older keys")

// KeysInUseError is ErrKeysInUse with the keys, the most used first.
type KeysInUseError struct{ Uses []KeyUse }

// Error names the first 16 keys.
func (e *KeysInUseError) Error() string {
	var names []string
	for _, use := range e.Uses[:min(len(e.Uses), maxNamedKeys)] {
		names = append(names, fmt.Sprintf("%d with key %d", use.Secrets, use.ID))
	}
	if more := len(e.Uses) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("others with %d more", more))
	}
	return fmt.Sprintf("%v: %s", ErrKeysInUse, strings.Join(names, ", "))
}

// Unwrap returns ErrKeysInUse.
func (*KeysInUseError) Unwrap() error { return ErrKeysInUse }

// RetireKeys removes the keys older than the primary one from the keyset file, if no secret is sealed with them and
// no replica seals with them. The previous file is kept beside it. It can take 12 seconds, to distinguish dead
// replicas from live ones that have not reported that they seal with the primary key.
//
// The retirement is recorded in the database before the file changes. From then on nothing is sealed with the keys, and
// no replica starts that would. If it is interrupted, the next call completes it.
//
// It returns a KeysInUseError, ErrReplicaNotPromoted, or the errors of RotateKey.
func (s *Store) RetireKeys(ctx context.Context) (seal.Retirement, error) {
	retired, err := s.keyring.Retire(ctx, func(keys *seal.Keys) error {
		// Check first, so that a refusal need not wait for replicas.
		if err := s.checkUnused(ctx, keys); err != nil {
			return err
		}
		if err := s.endSealing(ctx, keys); err != nil {
			return err
		}
		return s.checkUnused(ctx, keys)
	})
	if err != nil {
		return seal.Retirement{}, fmt.Errorf("retire keys: %w", err)
	}
	return retired, nil
}

// endSealing ensures that nothing is sealed with keys older than the primary one: each live replica has reported that
// it seals with that one, earlier transactions have ended, and no other replica can join.
func (s *Store) endSealing(ctx context.Context, keys *seal.Keys) (err error) {
	demanded, dead := sealsWith(keys.PrimaryID()), map[string]int64{}
	if s.IsShared() {
		if dead, err = demanded.await(ctx, s.database); err != nil {
			return err
		}
	}
	return s.database.ChangeAlone(ctx, func(tx *gorm.DB) error {
		if s.IsShared() {
			if err := demanded.removeDead(tx, dead); err != nil {
				return err
			}
		}
		if err := saveKeyset(tx, keys); err != nil {
			return err
		}
		return addRetirements(tx, keys.OlderIDs())
	})
}

// addRetirements records that keys are retired, unless an interrupted call already did.
func addRetirements(tx *gorm.DB, ids []uint32) error {
	var recorded []uint32
	err := tx.Model(&keyEvent{}).Where("event = ? AND key_id IN ?", EventKeyRetired, ids).Pluck("key_id", &recorded).Error
	if err != nil {
		return fmt.Errorf("find retired keys: %w", err)
	}
	var events []keyEvent
	for _, id := range ids {
		if !slices.Contains(recorded, id) {
			events = append(events, keyEvent{At: now(), Event: EventKeyRetired, KeyID: id})
		}
	}
	for chunk := range slices.Chunk(events, pageSize) {
		if err := tx.Create(&chunk).Error; err != nil {
			return fmt.Errorf("insert event %s: %w", EventKeyRetired, err)
		}
	}
	return nil
}

// checkUnused returns a KeysInUseError if a secret is sealed with a key older than the primary one.
func (s *Store) checkUnused(ctx context.Context, keys *seal.Keys) error {
	var prefixes [][]byte
	counts := map[uint32]int64{}
	for _, id := range keys.OlderIDs() {
		prefixes = append(prefixes, seal.Prefix(id))
	}
	for _, column := range sealedColumns() {
		if err := column.countUses(s.reader(ctx), prefixes, counts); err != nil {
			return err
		}
	}
	if len(counts) == 0 {
		return nil
	}
	var uses []KeyUse
	for id, count := range counts {
		uses = append(uses, KeyUse{ID: id, Secrets: count})
	}
	slices.SortFunc(uses, func(a, b KeyUse) int {
		return cmp.Or(cmp.Compare(b.Secrets, a.Secrets), cmp.Compare(a.ID, b.ID))
	})
	return &KeysInUseError{Uses: uses}
}

// countUses counts the values with each prefix in one pass.
func (c sealedColumn) countUses(db *gorm.DB, prefixes [][]byte, counts map[uint32]int64) error {
	prefix := "substr(" + c.name + ", 1, 5)"
	var found []struct {
		Prefix  []byte
		Secrets int64
	}
	err := db.Table(c.table).Select(prefix+" AS prefix, count(*) AS secrets").
		Where(prefix+" IN ?", prefixes).Group(prefix).Find(&found).Error
	if err != nil {
		return fmt.Errorf("count secrets sealed with older keys: %w", err)
	}
	for _, use := range found {
		id, _ := seal.KeyID(use.Prefix)
		counts[id] += use.Secrets
	}
	return nil
}
