package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/seal"
)

// ErrChanged means that a provider was changed or deleted since the change was planned.
var ErrChanged = errors.New("provider was changed or deleted meanwhile")

// ErrKeyTaken means that another record of the caller has the idempotency key.
var ErrKeyTaken = errors.New("idempotency key is taken by another provider")

// Change is a change of a stored provider.
type Change struct {
	// Planned is the record that the change was planned with. If the stored one differs, the change is refused.
	Planned Record
	// Requested has the name, the idempotency key and the settings that the record gets; nil deletes it.
	Requested Record
	// Fields are the names of the settings that differ, for the audit.
	Fields []string
	// BodyDigest is the digest of the body that a retry with the idempotency key sends. If it is nil, a body counts as the
	// same if it means the same as the record.
	BodyDigest []byte
}

// pk returns the pk of the provider.
func (c Change) pk() int32 { return c.Planned.Common().PK }

// isRename reports whether the change replaces the idempotency key.
func (c Change) isRename() bool {
	before, _ := c.Planned.Common().idempotencyScope()
	after, _ := c.Requested.Common().idempotencyScope()
	return before != after
}

// ChangeProviders makes changes of different providers, all or none, in one transaction; pass at most 200. Two of them
// can swap their client_ids. The pk, the creation and the links to applications stay. The audit gets an event of each,
// with osUser as the user who made it.
//
// It returns ErrChanged, ErrClientIDTaken, ErrKeyTaken, ErrProviderInUse, ErrDamaged, ErrNoKeyset, ErrKeysetUnusable or
// ErrUnavailable; nothing is changed then. It can also return ErrOutcomeUnknown.
func (s *Store) ChangeProviders(ctx context.Context, changes []Change, osUser string) error {
	if len(changes) == 0 {
		return nil
	}
	err := s.database.Change(ctx, func(tx *gorm.DB) error {
		keys, err := s.keys.forChange(tx)
		if err != nil {
			return err
		}
		if err := checkPlanned(tx, keys, changes); err != nil {
			return err
		}
		change := changing{tx: tx, keys: keys, osUser: osUser, at: now()}
		return change.apply(changes)
	})
	if err != nil {
		return fmt.Errorf("change providers: %w", err)
	}
	return nil
}

// checkPlanned returns ErrChanged unless each stored record is the planned one.
func checkPlanned(tx *gorm.DB, keys *seal.Keys, changes []Change) error {
	var pks []int32
	for _, change := range changes {
		pks = append(pks, change.pk())
	}
	stored, err := recordsIn(tx, keys, pks)
	if err != nil {
		return err
	}
	for _, change := range changes {
		record, ok := stored[change.pk()]
		switch {
		case record.damaged != nil:
			return record.damaged
		case !ok, !isSame(record.value, change.Planned):
			return fmt.Errorf("provider %d: %w", change.pk(), ErrChanged)
		}
	}
	return nil
}

// recordsIn returns the records of pks, read in a transaction.
func recordsIn(tx *gorm.DB, keys *seal.Keys, pks []int32) (map[int32]readable[Record], error) {
	var page []Provider
	if err := withApplications(tx).Where("pk IN ?", padded(pks)).Find(&page).Error; err != nil {
		return nil, fmt.Errorf("read providers: %w", err)
	}
	stored := map[int32]readable[Record]{}
	if err := readWith[oauth2Row](tx, keys, ofKind(page, KindOAuth2), stored); err != nil {
		return nil, err
	}
	err := readWith[workspaceDirectoryRow](tx, keys, ofKind(page, KindWorkspaceDirectory), stored)
	return stored, err
}

// isSame reports whether two records have the same creation and settings, whatever they are linked to.
func isSame(a, b Record) bool {
	return reflect.DeepEqual(a.Common().Creation, b.Common().Creation) && reflect.DeepEqual(settingsOf(a), settingsOf(b))
}

// settingsOf returns the settings of a record.
func settingsOf(record Record) settings {
	switch record := record.(type) {
	case OAuth2Provider:
		return &record.OAuth2Settings
	case WorkspaceDirectoryProvider:
		return &record.WorkspaceDirectorySettings
	default:
		panic(fmt.Sprintf("a record is a %T", record))
	}
}

// readWith adds the records of providers of one kind, read in a transaction.
func readWith[Row kindRow](
	tx *gorm.DB, keys *seal.Keys, providers map[int32]Provider, read map[int32]readable[Record],
) error {
	if len(providers) == 0 {
		return nil
	}
	rows, err := readRows[Row](tx.Where("pk IN ?", padded(slices.Sorted(maps.Keys(providers)))))
	if err != nil {
		return fmt.Errorf("read settings of providers: %w", err)
	}
	addRecords(rows, keys, providers, read)
	return nil
}

// changing makes changes in a transaction.
type changing struct {
	tx     *gorm.DB
	keys   *seal.Keys
	osUser string
	at     time.Time
}

// apply deletes before it updates, and frees client_ids before it assigns them, so that each can pass to another
// provider.
func (c changing) apply(changes []Change) error {
	var deleted []int32
	var updated []Change
	leaves := map[int32]Leaf{}
	for _, change := range changes {
		var err error
		if leaves[change.pk()], err = leafOf(c.tx, c.keys, change.Planned); err != nil {
			return err
		}
		if change.Requested == nil {
			deleted = append(deleted, change.pk())
		} else {
			updated = append(updated, change)
		}
	}
	if err := c.delete(deleted, leaves); err != nil {
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
	return c.addEvents(changes, leaves)
}

func (c changing) delete(pks []int32, leaves map[int32]Leaf) error {
	if len(pks) == 0 {
		return nil
	}
	if _, err := deletable(c.tx, pks); err != nil {
		return err
	}
	return deleteChunk(c.tx, pks, leaves, c.osUser, c.at)
}

// free replaces the unique values that a change replaces by temporary ones.
func (c changing) free(change Change) error {
	before, after := settingsOf(change.Planned), settingsOf(change.Requested)
	if before.uniqueValue() != after.uniqueValue() {
		const length = 64
		row := c.tx.Model(&oauth2Row{}).Where("pk = ?", change.pk())
		err := row.UpdateColumn("client_id", RandomAlphanumeric(length)).Error
		if err != nil {
			return fmt.Errorf("free client_id: %w", err)
		}
	}
	if !change.isRename() {
		return nil
	}
	err := c.tx.Model(&Creation{}).Where("pk = ?", change.pk()).UpdateColumn("idempotency_key", nil).Error
	if err != nil {
		return fmt.Errorf("free idempotency key: %w", err)
	}
	return nil
}

// update writes the rows of a provider.
func (c changing) update(change Change) error {
	requested := change.Requested.Common()
	var fingerprint []byte
	if change.BodyDigest != nil {
		var err error
		if fingerprint, err = c.keys.Fingerprint(change.BodyDigest); err != nil {
			return fmt.Errorf("compute fingerprint: %w", err)
		}
	}
	columns := map[string]any{
		"name": requested.Name, "idempotency_key": requested.IdempotencyKey, "fingerprint": fingerprint,
	}
	err := c.tx.Model(&Creation{}).Where("pk = ?", change.pk()).UpdateColumns(columns).Error
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		return ErrKeyTaken
	}
	if err != nil {
		return fmt.Errorf("update provider: %w", err)
	}
	var rows kindRows
	if err := settingsOf(change.Requested).addRow(&rows, c.keys, change.pk()); err != nil {
		return err
	}
	for _, row := range rows.all() {
		err := c.tx.Select("*").Omit("pk").Updates(row).Error
		if errors.Is(err, gorm.ErrDuplicatedKey) {
			return ErrClientIDTaken
		}
		if err != nil {
			return fmt.Errorf("update settings: %w", err)
		}
	}
	return nil
}

// changeRow is the row of a change in the audit.
type changeRow struct {
	ID     int32 `gorm:"primaryKey"`
	At     time.Time
	PK     int32
	Change string
	Fields List[string]
	OSUser string `gorm:"column:os_user"`
	// LeafBefore is the leaf of the record before the change; nil if it could not be read, or an earlier release made the
	// change.
	LeafBefore []byte
}

// TableName returns the table for GORM.
func (changeRow) TableName() string { return "provider_changes" }

// addEvents adds the rows of updates to the audit.
func (c changing) addEvents(changes []Change, leaves map[int32]Leaf) error {
	var rows []changeRow
	add := func(change Change, name string, fields List[string]) {
		rows = append(rows, changeRow{
			At: c.at, PK: change.pk(), Change: name, Fields: fields, OSUser: c.osUser, LeafBefore: leaves[change.pk()],
		})
	}
	for _, change := range changes {
		if change.Requested != nil && change.isRename() {
			add(change, "renamed", List[string]{})
		}
		if change.Requested != nil && (len(change.Fields) > 0 || !change.isRename()) {
			add(change, "updated", append(List[string]{}, change.Fields...))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := c.tx.Create(&rows).Error; err != nil {
		return fmt.Errorf("insert changes: %w", err)
	}
	return nil
}
