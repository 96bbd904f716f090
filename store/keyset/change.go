package keyset

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/event"
	"example.com/providerd/store/seal"
)

// Rotate adds a data key, which seals new secrets from then on, and returns its id. It returns ErrUnavailable or
// ErrOutcomeUnknown.
func (k *Keys) Rotate(ctx context.Context) (id uint32, err error) {
	err = k.database.Write(ctx, func(tx *gorm.DB) error {
		return k.change(tx, func(c *change) error {
			if c.keys, err = c.keys.Rotated(); err != nil {
				return err
			}
			id = c.keys.PrimaryID()
			return event.Add(tx, event.Event{Event: event.KeyRotated, Subject: int64(id)})
		})
	})
	if err != nil {
		return 0, fmt.Errorf("rotate key: %w", err)
	}
	return id, nil
}

// ErrRewrapped means that the primary master key already encrypts the data keys.
var ErrRewrapped = errors.New("the primary master key already encrypts the data keys")

// Rewrap encrypts the data keys with the primary master key of the keyset file, and returns its id. It returns
// ErrRewrapped, ErrUnavailable or ErrOutcomeUnknown.
func (k *Keys) Rewrap(ctx context.Context) (id uint32, err error) {
	err = k.database.Write(ctx, func(tx *gorm.DB) error {
		return k.change(tx, func(c *change) error {
			if id = c.master.PrimaryID(); id == c.masterID {
				return fmt.Errorf("%w: %d", ErrRewrapped, id)
			}
			c.masterID = id
			return event.Add(tx, event.Event{Event: event.KeysRewrapped, Subject: int64(id)})
		})
	})
	if err != nil {
		return 0, fmt.Errorf("rewrap keys: %w", err)
	}
	return id, nil
}

// change is a change of the keyset. It begins with the keyset as it is.
type change struct {
	keys   *seal.Keys
	master *seal.MasterKeys
	// masterID is the master key that encrypts the data keys.
	masterID uint32
}

// change changes the keyset of the database in a transaction that writes.
func (k *Keys) change(tx *gorm.DB, do func(c *change) error) error {
	row, err := Find(tx)
	if err != nil {
		return err
	}
	keys, master, err := row.openWith(k.path)
	if err != nil {
		return err
	}
	c := change{keys: keys, master: master}
	c.masterID, _ = row.MasterID()
	if err := do(&c); err != nil {
		return err
	}
	if row.Wrapped, err = c.keys.Wrap(master, c.masterID, row.DatabaseID); err != nil {
		return err
	}
	row.Version = randomBytes()
	if err := tx.Save(&row).Error; err != nil {
		return fmt.Errorf("save the keyset: %w", err)
	}
	return nil
}
