package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/seal"
)

// RotateKey adds a key to the keyset, seals new secrets with it, and returns its id. A running server uses it from its
// next create on. Concurrent calls in several programs take turns.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, ErrKeysetFull, ErrUnavailable, ErrOutcomeUnknown or an error of the file
// system. If only the commit of the event failed, the key is in the keyset and in use.
func (s *Store) RotateKey(ctx context.Context) (id uint32, err error) {
	return s.changeKeys(ctx, "rotate key", EventKeyRotated, seal.RotateKey, nil)
}

// AddKey adds a key that can open secrets but does not seal yet, and returns its id. It returns the errors of
// RotateKey.
func (s *Store) AddKey(ctx context.Context) (id uint32, err error) {
	return s.changeKeys(ctx, "add key", EventKeyAdded, seal.AddKey, nil)
}

// PromoteKey makes the newest key of the keyset file seal, and returns its id. It can take 12 seconds, to distinguish
// dead replicas from live ones that lack the key. Afterwards no replica can start without it.
//
// It returns ErrReplicaLacksKey, ErrKeyPromoted, or the errors of RotateKey.
func (s *Store) PromoteKey(ctx context.Context) (id uint32, err error) {
	var dead map[string]int64
	step := func(before *seal.Keys) (*seal.Keys, error) {
		after, err := seal.PromoteNewest(before)
		if err == nil && s.IsShared() {
			dead, err = hasKey(after.NewestID()).await(ctx, s.database)
		}
		return after, err
	}
	return s.changeKeys(ctx, "promote key", EventKeyPromoted, step, func(tx *gorm.DB, after *seal.Keys) error {
		if s.IsShared() {
			if err := hasKey(after.NewestID()).removeDead(tx, dead); err != nil {
				return err
			}
		}
		return saveKeyset(tx, after)
	})
}

// changeKeys changes the keyset file and, in one transaction, adds the event and runs more statements, if any. It
// returns the id of the newest key.
func (s *Store) changeKeys(
	ctx context.Context, doing string, event EventKind, step seal.Step, more func(tx *gorm.DB, after *seal.Keys) error,
) (id uint32, err error) {
	err = s.keyring.Change(ctx, step, func(after *seal.Keys, write func() error) error {
		id = after.NewestID()
		return s.database.Change(ctx, func(tx *gorm.DB) error {
			if more != nil {
				if err := more(tx, after); err != nil {
					return err
				}
			}
			if err := addKeyEvent(tx, event, id); err != nil {
				return err
			}
			return write()
		})
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", doing, err)
	}
	return id, nil
}
