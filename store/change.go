package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/records"
	"example.com/providerd/store/rows"
)

// Change is a create, an update or a delete of a provider by an operator.
type Change struct {
	// Planned is the opened record that the change was planned with; nil for a create.
	Planned records.Record
	// Requested has the name, caller, idempotency key, generated values and settings to write; nil deletes the record.
	Requested records.Record
	// Fields are the names of the fields that differ, for the log of events.
	Fields []string
}

// isRename reports whether an update replaces the idempotency key, or the caller to whom it belongs.
func (c Change) isRename() bool {
	before, after := c.Planned.Common(), c.Requested.Common()
	return text(before.IdempotencyKey) != text(after.IdempotencyKey) || before.CreatedBy != after.CreatedBy
}

func (c Change) replacesClientID() bool {
	return text(c.Planned.UniqueClientID()) != text(c.Requested.UniqueClientID())
}

// ChangePlanned makes changes of different stored providers as Change does, or returns ErrChanged if one has changed.
func (p *Providers) ChangePlanned(ctx context.Context, changes []Change) error {
	_, err := p.Change(ctx, func(in Reader) ([]Change, error) {
		for _, change := range changes {
			pk := change.Planned.Common().PK
			record, err := in.Get(ctx, pk)
			switch {
			case errors.Is(err, ErrNotFound), err == nil && !records.IsSame(record, change.Planned):
				return nil, fmt.Errorf("provider %d: %w", pk, ErrChanged)
			case err != nil:
				return nil, err
			}
		}
		return changes, nil
	})
	return err
}

// Change makes changes of different providers, all or none, in one transaction. It gets them from plan, which reads in
// that transaction, where no other program changes a provider, though some may be created. If plan returns an error,
// nothing is changed. It may be called again. Any number of providers can exchange their client_ids. The pk, the
// creation and the links to applications stay. The log gets an event of each change. Change returns the pks of the
// changed providers, in the order of the changes.
//
// It returns the error of plan, ErrClientIDTaken, ErrKeyTaken, ErrProviderInUse, ErrNotFound, seal.ErrNoKeyset,
// seal.ErrKeysetUnusable or ErrUnavailable; nothing is changed then. It can also return ErrOutcomeUnknown.
func (p *Providers) Change(ctx context.Context, plan func(in Reader) ([]Change, error)) (pks []int64, err error) {
	err = p.database.Write(ctx, func(tx *gorm.DB) error {
		keys, err := p.keys.Latest(tx)
		if err != nil {
			return err
		}
		changes, err := plan(Reader{p.database, p.keys, tx})
		if err == nil {
			pks, err = changing{tx, keys, newInserter(p.database, p.keys)}.apply(changes)
		}
		return err
	})
	return pks, database.Wrap("change providers", err)
}

// changing makes changes in a transaction.
type changing struct {
	tx   *gorm.DB
	keys *keyset.Loaded
	inserter
}

// apply deletes before it writes, and frees unique values before it assigns them, so that providers can swap them.
func (c changing) apply(changes []Change) ([]int64, error) {
	pks := make([]int64, len(changes))
	var deleted []int64
	var updated, created []int
	for i, change := range changes {
		if change.Planned == nil {
			created = append(created, i)
			continue
		}
		if pks[i] = change.Planned.Common().PK; change.Requested == nil {
			deleted = append(deleted, pks[i])
		} else {
			updated = append(updated, i)
		}
	}
	if err := deleteProviders(c.tx, deleted); err != nil {
		return nil, err
	}
	if err := c.free(changes, updated); err != nil {
		return nil, err
	}
	for _, indexes := range [...][]int{updated, created} {
		for chunk := range slices.Chunk(indexes, rows.PageSize) {
			if err := c.write(changes, chunk, pks); err != nil {
				return nil, err
			}
		}
	}
	return pks, event.Add(c.tx, eventsOf(changes)...)
}

// free removes the unique values that updates replace. A client_id is replaced by one that no caller can have, because
// it contains a control character.
func (c changing) free(changes []Change, updated []int) error {
	var renamed, replaced []int64
	for _, i := range updated {
		pk := changes[i].Planned.Common().PK
		if changes[i].isRename() {
			renamed = append(renamed, pk)
		}
		if changes[i].replacesClientID() {
			replaced = append(replaced, pk)
		}
	}
	placeholder := gorm.Expr("CAST(? AS TEXT) || uid", "\x01")
	return errors.Join(c.set("idempotency_key", nil, renamed), c.set(records.ClientIDColumn, placeholder, replaced))
}

func (c changing) set(column string, value any, pks []int64) error {
	for chunk := range slices.Chunk(pks, rows.PageSize) {
		query := c.tx.Table(records.Table).Where("pk IN ?", chunk)
		if err := query.UpdateColumn(column, value).Error; err != nil {
			return err
		}
	}
	return nil
}

// write writes the rows of changes, all updates or all creates, with one statement, and sets the pks of creates.
func (c changing) write(changes []Change, chunk []int, pks []int64) error {
	isUpdate, at := changes[chunk[0]].Planned != nil, database.Now()
	if !isUpdate {
		created, err := c.database.NewPKs(c.tx, len(chunk))
		if err != nil {
			return fmt.Errorf("choose pks: %w", err)
		}
		for n, i := range chunk {
			pks[i] = created[n]
		}
	}
	values := make([]map[string]any, len(chunk))
	for n, i := range chunk {
		common := written(changes[i], at)
		row := &create{requested: changes[i].Requested, common: &common}
		if err := c.seal(row, c.keys); err != nil {
			return err
		}
		// SQLite stores a time as an integer.
		row.row[c.createdAt] = common.CreatedAt
		values[n] = map[string]any{records.PKColumn: pks[i]}
		for place, column := range c.columns {
			values[n][column] = row.row[place]
		}
	}
	query := c.tx.Table(records.Table)
	if isUpdate {
		// For triggers, this is an UPDATE.
		query = query.Clauses(clause.OnConflict{
			Columns: []clause.Column{{Name: records.PKColumn}}, DoUpdates: clause.AssignmentColumns(c.columns),
		})
	}
	err := query.Create(values).Error
	writesClientID := func(i int) bool { return !isUpdate || changes[i].replacesClientID() }
	switch {
	case !errors.Is(err, gorm.ErrDuplicatedKey):
		return err
	case slices.ContainsFunc(chunk, writesClientID):
		return ErrClientIDTaken
	default:
		return ErrKeyTaken
	}
}

// written returns what the providers of both kinds have in common, of a create or an update.
func written(change Change, at database.Time) records.Provider {
	requested := change.Requested.Common()
	if change.Planned == nil {
		requested.UID, requested.CreatedAt = uuid.Must(uuid.NewV7()), at
		return requested
	}
	common := change.Planned.Common()
	common.Name, common.CreatedBy, common.Generated = requested.Name, requested.CreatedBy, requested.Generated
	common.IdempotencyKey = requested.IdempotencyKey
	return common
}

// eventsOf returns the events of updates; a trigger adds the events of creates.
func eventsOf(changes []Change) (events []event.Event) {
	for _, change := range changes {
		if change.Planned == nil || change.Requested == nil {
			continue
		}
		if change.isRename() {
			events = append(events, eventOf(event.ProviderRenamed, change.Planned.Common(), nil))
		}
		if len(change.Fields) > 0 || !change.isRename() {
			events = append(events, eventOf(event.ProviderUpdated, change.Planned.Common(), change.Fields))
		}
	}
	return events
}

func eventOf(happened event.Type, about records.Provider, fields []string) event.Event {
	return event.Event{Event: happened, Subject: about.PK, Kind: string(about.Kind), Fields: fields}
}

// Delete deletes providers, all or none, in one transaction; pass at most a few thousand. Their idempotency
// keys go with them, so that a create with the same key creates a record again. Their events stay.
//
// It returns ErrNotFound for each provider that does not exist, ErrProviderInUse for each that is linked to an
// application, or ErrUnavailable; nothing is deleted then. It can also return ErrOutcomeUnknown.
func (p *Providers) Delete(ctx context.Context, pks []int64) error {
	err := p.database.Write(ctx, func(tx *gorm.DB) error { return deleteProviders(tx, pks) })
	return database.Wrap("delete providers", err)
}

// deleteProviders is Delete within a transaction.
func deleteProviders(tx *gorm.DB, pks []int64) error {
	providers, err := Reader{transaction: tx}.Deletable(tx.Statement.Context, pks)
	if err != nil {
		return err
	}
	var events []event.Event
	for _, deleted := range providers {
		events = append(events, eventOf(event.ProviderDeleted, deleted, nil))
	}
	for chunk := range slices.Chunk(pks, rows.PageSize) {
		if err := tx.Delete(&records.Provider{}, "pk IN ?", chunk).Error; err != nil {
			return err
		}
	}
	return event.Add(tx, events...)
}
