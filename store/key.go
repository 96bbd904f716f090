package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/seal"
)

// IsShared tells whether other replicas use the database at the same time. A new key is then first to be brought to
// each of them.
func (s *Store) IsShared() bool { return s.database.IsShared() }

// RotateKey adds a key to the keyset, with which secrets are sealed from now on, and returns its id. A running server
// uses it from its next create on. Two programs that rotate at a time take turns.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, ErrUnavailable, ErrOutcomeUnknown or an error of the file system. Where it
// is the commit of the event that failed, the key is in the keyset and seals all the same.
func (s *Store) RotateKey(ctx context.Context) (id uint32, err error) {
	err = s.keyring.Change(ctx, seal.Rotated, func(after *seal.Keys, write func() error) error {
		if id, err = after.PrimaryID(); err != nil {
			return err
		}
		return s.database.Change(ctx, func(tx *gorm.DB) error {
			if err := addKeyEvent(tx, EventKeyRotated, id); err != nil {
				return err
			}
			return write()
		})
	})
	if err != nil {
		return 0, fmt.Errorf("rotate key: %w", err)
	}
	return id, nil
}

// AddKey adds a key to the keyset file, which opens secrets and does not seal yet, and returns its id. It returns the
// errors of RotateKey.
func (s *Store) AddKey(ctx context.Context) (id uint32, err error) {
	err = s.keyring.Change(ctx, seal.Added, func(after *seal.Keys, write func() error) error {
		ids := after.IDs()
		id = ids[len(ids)-1]
		return s.database.Change(ctx, func(tx *gorm.DB) error {
			if err := addKeyEvent(tx, EventKeyAdded, id); err != nil {
				return err
			}
			return write()
		})
	})
	if err != nil {
		return 0, fmt.Errorf("add key: %w", err)
	}
	return id, nil
}

// PromoteKey lets the newest key of the keyset file seal, and returns its id. It takes up to 12 seconds to tell
// replicas that are gone from those that live and lack the key. From then on, no replica starts that lacks it.
//
// It returns ErrReplicaLacksKey, ErrKeyPromoted, or the errors of RotateKey.
func (s *Store) PromoteKey(ctx context.Context) (id uint32, err error) {
	err = s.keyring.Change(ctx, seal.Promoted, func(after *seal.Keys, write func() error) error {
		if id, err = after.PrimaryID(); err != nil {
			return err
		}
		var dead map[string]int64
		if s.IsShared() {
			if dead, err = awaitReplicas(ctx, s.database, id); err != nil {
				return err
			}
		}
		return s.database.Change(ctx, func(tx *gorm.DB) error {
			if err := s.removeDead(tx, id, dead); err != nil {
				return err
			}
			if err := saveKeyset(tx, after); err != nil {
				return err
			}
			if err := addKeyEvent(tx, EventKeyPromoted, id); err != nil {
				return err
			}
			return write()
		})
	})
	if err != nil {
		return 0, fmt.Errorf("promote key: %w", err)
	}
	return id, nil
}

// removeDead removes the replicas without the key that have given no sign of life. Where there are others, they have
// come meanwhile.
func (s *Store) removeDead(tx *gorm.DB, key uint32, dead map[string]int64) error {
	if !s.IsShared() {
		return nil
	}
	rows, err := replicasWithout(tx, key)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if beat, ok := dead[row.ID]; !ok || beat != row.Beat {
			return fmt.Errorf("%w %d: %s; bring the keyset file to it", ErrReplicaLacksKey, key, row.Name)
		}
		if err := tx.Delete(&row).Error; err != nil {
			return fmt.Errorf("remove a replica that is gone: %w", err)
		}
	}
	return nil
}
