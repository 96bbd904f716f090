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

// maxNamedKeys bounds how many keys an error names.
const maxNamedKeys = 16

// KeyUse is how many secrets a key has sealed.
type KeyUse struct {
	ID      uint32
	Secrets int64
}

// ErrKeysInUse says that keys cannot be retired, since secrets are sealed with them. It comes as a KeysInUseError.
var ErrKeysInUse = errors.New("secrets are encrypted with older keys")

// KeysInUseError is ErrKeysInUse with the keys, those with the most secrets first.
type KeysInUseError struct{ Uses []KeyUse }

// Error names the first 16 of the keys.
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

// RetireKeys removes the keys from the keyset file that are older than the one that seals, once nothing is sealed with
// them and nobody seals with them any more. The file as it was is kept beside it. It takes up to 12 seconds to tell
// replicas that are gone from those that live and have not told that they seal with the newer key.
//
// A retirement is noted in the database before the file changes. From then on nothing is sealed with the key, and no
// replica starts that would. Interrupted, it is completed by the next call.
//
// It returns a KeysInUseError, ErrReplicaNotPromoted, or the errors of RotateKey.
func (s *Store) RetireKeys(ctx context.Context) (seal.Retirement, error) {
	retired, err := s.keyring.Retire(ctx, func(keys *seal.Keys) error {
		// What is refused anyway waits for no replica.
		if err := s.demandUnused(ctx, keys); err != nil {
			return err
		}
		if err := s.endSealing(ctx, keys); err != nil {
			return err
		}
		return s.demandUnused(ctx, keys)
	})
	if err != nil {
		return seal.Retirement{}, fmt.Errorf("retire keys: %w", err)
	}
	return retired, nil
}

// endSealing makes sure that nothing is sealed any more with keys that are older than the one that seals: each replica
// has told that it seals with that one, what was under way before is stored, and no other is let in.
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

// addRetirements notes that keys are retired, unless that was done in a call that was interrupted.
func addRetirements(tx *gorm.DB, ids []uint32) error {
	var noted []uint32
	err := tx.Model(&keyEvent{}).Where("event = ? AND key_id IN ?", EventKeyRetired, ids).Pluck("key_id", &noted).Error
	if err != nil {
		return fmt.Errorf("look up what keys are retired: %w", err)
	}
	var events []keyEvent
	for _, id := range ids {
		if !slices.Contains(noted, id) {
			events = append(events, keyEvent{At: now(), Event: EventKeyRetired, KeyID: id})
		}
	}
	for some := range slices.Chunk(events, pageSize) {
		if err := tx.Create(&some).Error; err != nil {
			return fmt.Errorf("note %s: %w", EventKeyRetired, err)
		}
	}
	return nil
}

// demandUnused returns a KeysInUseError where keys that are older than the one that seals have sealed anything.
func (s *Store) demandUnused(ctx context.Context, keys *seal.Keys) error {
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

// countUses adds how many values begin with each of the prefixes, in one pass.
func (c sealedColumn) countUses(db *gorm.DB, prefixes [][]byte, counts map[uint32]int64) error {
	prefix := "substr(" + c.name + ", 1, 5)"
	var found []struct {
		Prefix  []byte
		Secrets int64
	}
	err := db.Table(c.table).Select(prefix+" AS prefix, count(*) AS secrets").
		Where(prefix+" IN ?", prefixes).Group(prefix).Find(&found).Error
	if err != nil {
		return fmt.Errorf("count what older keys have sealed: %w", err)
	}
	for _, one := range found {
		id, _ := seal.KeyID(one.Prefix)
		counts[id] += one.Secrets
	}
	return nil
}
