package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
)

// ErrChanged means that a provider was changed or deleted since the change was planned.
var ErrChanged = errors.New("provider was changed or deleted in the meantime")

// ErrKeyTaken means that another record of the caller has the idempotency key.
var ErrKeyTaken = errors.New("idempotency key is taken by another provider")

// Change is a change of a stored provider.
type Change struct {
	// Planned is the opened record that the change was planned with. If the stored one differs, the change is refused.
	Planned Record
	// Requested has the name, the idempotency key, what the server chose and the settings that the record gets; nil
	// deletes it.
	Requested Record
	// Fields are the names of the fields that differ, for the log of events.
	Fields []string
}

func (c Change) pk() int64 { return c.Planned.Common().PK }

// isRename reports whether the change replaces the idempotency key.
func (c Change) isRename() bool {
	return comparePointers(c.Planned.Common().IdempotencyKey, c.Requested.Common().IdempotencyKey) != 0
}

// ChangeProviders makes changes of different providers, all or none, in one transaction; pass at most 200. Two of them
// can swap their client_ids. The pk, the creation and the links to applications stay. The log gets an event of each.
//
// It returns ErrChanged, ErrClientIDTaken, ErrKeyTaken, ErrProviderInUse, ErrDamaged, ErrNoKeyset, ErrKeysetUnusable or
// ErrUnavailable; nothing is changed then. It can also return ErrOutcomeUnknown.
func (s *Store) ChangeProviders(ctx context.Context, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	err := s.database.Write(ctx, func(tx *gorm.DB) error {
		keys, err := s.keys.latest(tx)
		if err != nil {
			return err
		}
		if err := checkPlanned(tx, keys, changes); err != nil {
			return err
		}
		return changing{tx: tx, keys: keys}.apply(changes)
	})
	if err != nil {
		return fmt.Errorf("change providers: %w", err)
	}
	return nil
}

// checkPlanned returns ErrChanged unless each stored record is the planned one.
func checkPlanned(tx *gorm.DB, keys *loadedKeys, changes []Change) error {
	var pks []int64
	for _, change := range changes {
		pks = append(pks, change.pk())
	}
	rows, err := recordsIn(tx.Where("pk IN ?", pks))
	if err != nil {
		return err
	}
	stored := map[int64]readable[Record]{}
	for _, row := range rows {
		stored[row.value.Common().PK] = row
	}
	for _, change := range changes {
		row, ok := stored[change.pk()]
		if row.damaged != nil {
			return row.damaged
		}
		if !ok {
			return fmt.Errorf("provider %d: %w", change.pk(), ErrChanged)
		}
		record, err := open(keys, row.value)
		if err != nil {
			return err
		}
		if !isSame(record, change.Planned) {
			return fmt.Errorf("provider %d: %w", change.pk(), ErrChanged)
		}
	}
	return nil
}

// isSame reports whether two opened records are equal, whatever they are linked to and whichever key seals their
// secrets.
func isSame(a, b Record) bool {
	plain := func(record Record) Record {
		common := record.Common()
		common.Sealed, common.Application, common.Backchannel = nil, Application{}, Backchannel{}
		_, secret := record.secret()
		return record.with(common, secret)
	}
	return reflect.DeepEqual(plain(a), plain(b))
}

// changing makes changes in a transaction.
type changing struct {
	tx   *gorm.DB
	keys *loadedKeys
}

// apply deletes before it updates, and frees client_ids before it assigns them, so that each can pass to another
// provider.
func (c changing) apply(changes []Change) error {
	var deleted []int64
	var updated []Change
	for _, change := range changes {
		if change.Requested == nil {
			deleted = append(deleted, change.pk())
		} else {
			updated = append(updated, change)
		}
	}
	if err := deleteProviders(c.tx, deleted); err != nil {
		return err
	}
	for _, change := range updated {
		if err := c.free(change); err != nil {
			return err
		}
	}
	for _, change := range updated {
		if err := c.update(change); err != nil {
			return fmt.Errorf("provider %d: %w", change.pk(), err)
		}
	}
	return addEvents(c.tx, eventsOf(updated)...)
}

// free replaces the unique values that a change replaces by temporary ones.
func (c changing) free(change Change) error {
	freed := map[string]any{}
	if comparePointers(change.Planned.clientID(), change.Requested.clientID()) != 0 {
		const length = 64
		freed["client_id"] = RandomAlphanumeric(length)
	}
	if change.isRename() {
		freed["idempotency_key"] = nil
	}
	if len(freed) == 0 {
		return nil
	}
	if err := c.tx.Table(providersTable).Where("pk = ?", change.pk()).UpdateColumns(freed).Error; err != nil {
		return fmt.Errorf("free unique values of provider %d: %w", change.pk(), err)
	}
	return nil
}

// update writes the row of a provider.
func (c changing) update(change Change) error {
	common := change.Planned.Common()
	requested := change.Requested.Common()
	common.Name, common.IdempotencyKey, common.Generated = requested.Name, requested.IdempotencyKey, requested.Generated
	_, secret := change.Requested.secret()
	sealed, err := c.keys.Seal(secret, placeOf(common))
	if err != nil {
		return err
	}
	columns := map[string]any{
		"name": common.Name, "idempotency_key": common.IdempotencyKey, "generated": common.Generated, "secret": sealed,
	}
	for _, column := range change.Requested.settings() {
		columns[column.name] = column.value
	}
	err = c.tx.Table(providersTable).Where("pk = ?", change.pk()).UpdateColumns(columns).Error
	if !errors.Is(err, gorm.ErrDuplicatedKey) {
		return err
	}
	if change.isRename() && comparePointers(change.Planned.clientID(), change.Requested.clientID()) == 0 {
		return ErrKeyTaken
	}
	return ErrClientIDTaken
}

func eventsOf(updated []Change) (events []Event) {
	for _, change := range updated {
		event := Event{Subject: change.pk(), Kind: change.Planned.Common().Kind}
		if change.isRename() {
			event.Event = EventProviderRenamed
			events = append(events, event)
		}
		if len(change.Fields) > 0 || !change.isRename() {
			event.Event, event.Fields = EventProviderUpdated, change.Fields
			events = append(events, event)
		}
	}
	return events
}
