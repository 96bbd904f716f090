package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"time"

	"example.com/providerd/store/database"
)

// Events returns the events after a cursor that the filter selects, oldest first. On ErrUnavailable the sequence ends.
func (s *Store) Events(ctx context.Context, filter Filter, after EventCursor) iter.Seq2[Event, error] {
	var sequences []iter.Seq2[Event, error]
	for i, source := range s.eventSources() {
		if filter.isOfProviders() && !source.isOfProviders {
			continue
		}
		source.number = int64(i)
		sequences = append(sequences, s.eventsOf(ctx, source, filter, after))
	}
	return merged(sequences)
}

// merged merges sequences by time. Events with the same time are in the order of their sequences.
func merged(sequences []iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var heads []*eventHead
		for _, sequence := range sequences {
			next, stop := iter.Pull2(sequence)
			defer stop()
			head := &eventHead{next: next}
			if err := head.advance(); err != nil {
				yield(Event{}, err)
				return
			}
			heads = append(heads, head)
		}
		for oldest := oldestOf(heads); oldest != nil; oldest = oldestOf(heads) {
			if !yield(oldest.event, nil) {
				return
			}
			if err := oldest.advance(); err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// eventSource is a query of events.
type eventSource struct {
	// number orders events with the same time. Cursors contain it.
	number int64
	// rows selects the columns of an Event, the number of the row and, as creator, the caller that created the provider.
	rows string
	// isOfProviders is true for events of providers.
	isOfProviders bool
	// isInOrder is true if numbers and times are in the same order, so that SQLite needs no index on the time.
	isInOrder bool
}

const createdColumns = `created_at AS at, 'provider created' AS event, pk AS id, kind, name, created_by, request_id,
	remote_address, '' AS os_user, '[]' AS fields, pk AS number, created_by AS creator`

// changedColumns are the columns of a change, whose provider may have been deleted since.
const changedColumns = `changes.at, 'provider ' || changes.change AS event, changes.pk AS id,
	coalesce(providers.kind, deleted.kind, '') AS kind, coalesce(providers.name, deleted.name, '') AS name,
	'' AS created_by, '' AS request_id, '' AS remote_address, changes.os_user, changes.fields,
	changes.id AS number, coalesce(providers.created_by, deleted.created_by, '') AS creator`

const changedTables = ` FROM provider_changes AS changes LEFT JOIN providers ON providers.pk = changes.pk
	LEFT JOIN deleted_providers AS deleted ON deleted.pk = changes.pk`

const keyRows = `SELECT at, event, key_id AS id, '' AS kind, '' AS name, '' AS created_by,
	'' AS request_id, '' AS remote_address, '' AS os_user, '[]' AS fields, id AS number FROM key_events`

const tokenChangeRows = `SELECT changes.at, 'token ' || changes.change AS event, token_id AS id, '' AS kind,
	coalesce(tokens.name, '') AS name, '' AS created_by, '' AS request_id, '' AS remote_address, '' AS os_user,
	'[]' AS fields, changes.id AS number FROM token_changes AS changes LEFT JOIN tokens ON tokens.id = token_id`

// tokenRows selects the rows of an event whose time is in a column of tokens.
func tokenRows(at string, event EventKind) string {
	return "SELECT " + at + " AS at, '" + string(event) + `' AS event, id, '' AS kind, name, '' AS created_by,
		'' AS request_id, '' AS remote_address, '' AS os_user, '[]' AS fields, id AS number FROM tokens`
}

// eventSources select no secrets. The creation of a provider stays in the same source when the provider is deleted, so
// that no reader of pages gets it twice.
func (s *Store) eventSources() []eventSource {
	return []eventSource{
		{
			rows: "SELECT " + createdColumns + " FROM providers UNION ALL " +
				"SELECT " + createdColumns + " FROM deleted_providers",
			isOfProviders: true, isInOrder: !s.database.IsShared(),
		},
		{
			// A release without provider_changes deletes without a row in it.
			rows: `SELECT deleted_at AS at, 'provider deleted' AS event, pk AS id, kind, name, '' AS created_by,
				'' AS request_id, '' AS remote_address, coalesce((SELECT max(os_user) FROM provider_changes
				WHERE provider_changes.pk = deleted_providers.pk AND change = 'deleted'), '') AS os_user, '[]' AS fields,
				pk AS number, created_by AS creator FROM deleted_providers`,
			isOfProviders: true,
		},
		{rows: tokenRows("created_at", EventTokenCreated)},
		{rows: tokenRows("revoked_at", EventTokenRevoked)},
		{rows: keyRows},
		{
			rows:          "SELECT " + changedColumns + changedTables + " WHERE changes.change <> 'deleted'",
			isOfProviders: true,
		},
		{rows: tokenChangeRows + " WHERE changes.change = 'renewed'"},
	}
}

// eventRow is an event with the number of its row.
type eventRow struct {
	Event  `gorm:"embedded"`
	Number int64
}

// eventsOf returns the events of a source.
func (s *Store) eventsOf(
	ctx context.Context, source eventSource, filter Filter, after EventCursor,
) iter.Seq2[Event, error] {
	since, first := source.start(filter.Since.UTC(), after)
	rows := pages(func(last *eventRow) ([]eventRow, error) {
		query := filter.where(s.reader(ctx).Table("("+source.rows+") AS events"), "id", "creator")
		at, number := database.TimeOf(since), first
		if last != nil {
			at, number = last.At, last.Number
		}
		if source.isInOrder {
			query = query.Where("at >= ? AND number > ?", database.TimeOf(since), number).Order("number")
		} else {
			query = query.Where("(at, number) > (?, ?)", at, number).Order("at, number")
		}
		var page []eventRow
		if err := query.Limit(pageSize).Scan(&page).Error; err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		return page, nil
	})
	return func(yield func(Event, error) bool) {
		for row, err := range rows {
			row.Cursor = EventCursor{micros: row.At.UnixMicro(), source: source.number, number: row.Number}
			if !yield(row.Event, err) {
				return
			}
		}
	}
}

// start returns the time at which, and the row after which, the events of the source are after a cursor.
func (s eventSource) start(since time.Time, after EventCursor) (time.Time, int64) {
	if after == (EventCursor{}) {
		return since, 0
	}
	at := time.UnixMicro(after.micros).UTC()
	if at.Before(since) {
		return since, 0
	}
	switch cmp.Compare(s.number, after.source) {
	case -1:
		return at.Add(time.Microsecond), 0
	case 1:
		return at, 0
	default:
		return at, after.number
	}
}

// eventHead is a sequence of events and its next event.
type eventHead struct {
	next  func() (Event, error, bool)
	event Event
	ended bool
}

// advance reads the next event.
func (h *eventHead) advance() error {
	event, err, ok := h.next()
	h.event, h.ended = event, !ok
	return err
}

// oldestOf returns the sequence with the oldest next event; nil if all have ended.
func oldestOf(heads []*eventHead) (oldest *eventHead) {
	for _, head := range heads {
		if !head.ended && (oldest == nil || head.event.At.Before(oldest.event.At.Time)) {
			oldest = head
		}
	}
	return oldest
}
