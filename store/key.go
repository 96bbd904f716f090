package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/seal"
)

// RotateKey adds a key to the keyset, with which secrets are sealed from now on, and returns its id. A running server
// uses it from its next create on. Two programs that rotate at a time take turns.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, ErrKeysetFull, ErrUnavailable, ErrOutcomeUnknown or an error of the file
// system. Where it is the commit of the event that failed, the key is in the keyset and seals all the same.
func (s *Store) RotateKey(ctx context.Context) (id uint32, err error) {
	return s.changeKeys(ctx, "rotate key", EventKeyRotated, seal.RotateKey, nil)
}

// AddKey adds a key to the keyset file, which opens secrets and does not seal yet, and returns its id. It returns the
// errors of RotateKey.
func (s *Store) AddKey(ctx context.Context) (id uint32, err error) {
	return s.changeKeys(ctx, "add key", EventKeyAdded, seal.AddKey, nil)
}

// PromoteKey lets the newest key of the keyset file seal, and returns its id. It takes up to 12 seconds to tell
// replicas that are gone from those that live and lack the key. From then on, no replica starts that lacks it.
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

// changeKeys takes a step of the keyset file together with its event and with more statements, if any. It returns the
// id of the newest key, which every step is about.
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
