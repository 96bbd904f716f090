package keyset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
)

// Rotate adds a data key, which seals new secrets, and returns its id. It returns ErrUnavailable or ErrOutcomeUnknown.
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
	return id, database.Wrap("rotate key", err)
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
	return id, database.Wrap("rewrap keys", err)
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
	row, keys, master, err := openIn(tx, k.path)
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
	return tx.Save(&row).Error
}

// Key is a data key that seals secrets, or a master key.
type Key struct {
	// Kind is "data", "master" or, for a data key that secrets need but the database lacks, "missing".
	Kind string `json:"kind"`
	ID   uint32 `json:"id"`
	// CreatedAt is nil for a master key, or if it is not recorded.
	CreatedAt *database.Time `json:"created_at"`
	// Secrets is the number of secrets sealed with a data key; nil for a master key.
	Secrets *int64 `json:"secrets"`
	// InUse is true for the data key that seals new secrets, and the master key that encrypts the data keys.
	InUse bool `json:"in_use"`
}

// List lists the data keys, and the master keys of the keyset file, each oldest first. It returns the errors of Open.
func (k *Keys) List(ctx context.Context) (list []Key, err error) {
	reader := k.database.Reader().WithContext(ctx)
	row, keys, master, err := openIn(reader, k.path)
	if err != nil {
		return nil, err
	}
	uses, err := countUses(reader)
	if err != nil {
		return nil, err
	}
	ids, primary := keys.IDs(), keys.PrimaryID()
	for _, id := range ids {
		created, err := keyCreated(reader, id)
		if err != nil {
			return nil, err
		}
		key := Key{Kind: "data", ID: id, Secrets: new(uses[id]), InUse: id == primary}
		if !created.IsZero() {
			key.CreatedAt = new(database.TimeOf(created))
		}
		list = append(list, key)
	}
	for _, id := range slices.Sorted(maps.Keys(uses)) {
		if !slices.Contains(ids, id) {
			list = append(list, Key{Kind: "missing", ID: id, Secrets: new(uses[id])})
		}
	}
	masterID, _ := row.MasterID()
	for _, id := range master.IDs() {
		list = append(list, Key{Kind: "master", ID: id, InUse: id == masterID})
	}
	return list, nil
}

// countUses counts the secrets that each key has sealed.
func countUses(reader *gorm.DB) (map[uint32]int64, error) {
	var found []struct {
		Prefix  []byte
		Secrets int64
	}
	const prefix = "substr(secret, 1, 5)"
	err := reader.Table(records.Table).Select(prefix + " AS prefix, count(*) AS secrets").Group(prefix).Find(&found).Error
	if err != nil {
		return nil, fmt.Errorf("count secrets by key: %w", err)
	}
	uses := map[uint32]int64{}
	for _, use := range found {
		id, _ := seal.KeyID(use.Prefix)
		uses[id] = use.Secrets
	}
	return uses, nil
}

// NewestCreated returns when the key that seals was created, zero if that is not recorded, or ErrUnavailable.
func (k *Keys) NewestCreated(ctx context.Context) (time.Time, error) {
	keys, err := k.Current(k.database.Reader().WithContext(ctx))
	if err != nil {
		return time.Time{}, err
	}
	return keyCreated(k.database.Reader().WithContext(ctx), keys.PrimaryID())
}

// keyCreated returns when a data key was created; the zero value if it is not recorded.
func keyCreated(tx *gorm.DB, id uint32) (time.Time, error) {
	var created event.Event
	added := []event.Type{event.KeyCreated, event.KeyRotated}
	err := tx.Where("subject = ? AND event IN ? AND "+event.IsIndexed, id, added).Order("id").Limit(1).Find(&created).Error
	return created.At.Time, err
}
