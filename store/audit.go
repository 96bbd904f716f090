package store

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Events returns what was done since a time, oldest first. An error, which is ErrUnavailable, ends the sequence.
func (s *Store) Events(ctx context.Context, since time.Time) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var heads []*eventHead
		for _, source := range s.eventSources() {
			next, stop := iter.Pull2(s.eventsOf(ctx, source, since.UTC()))
			defer stop()
			heads = append(heads, &eventHead{next: next})
		}
		for {
			oldest, err := takeOldest(heads)
			if err != nil {
				yield(Event{}, err)
				return
			}
			if oldest == nil || !yield(*oldest, nil) {
				return
			}
		}
	}
}

// eventSource is a kind of event, or the table of several. It is read page by page: a reader that held a transaction
// open for as long as somebody looks at its output would keep the WAL from being reset.
type eventSource struct {
	event EventKind
	// query selects the page behind a row, with the columns of eventRow.
	query string
}

// eventRow is an event with the id of the row that it is from.
type eventRow struct {
	Event `gorm:"embedded"`
	Row   int32
}

// providersByPK reads providers in the order of their pk, which is that of their times where one program creates at a
// time: SQLite needs no index by time then.
const providersByPK = `SELECT created_at AS at, @event AS event, pk AS id, kind, name, created_by, request_id,
	remote_address, pk AS row FROM providers WHERE created_at >= @since AND pk > @row ORDER BY pk LIMIT @limit`

// providersByTime reads providers that several replicas created.
const providersByTime = `SELECT created_at AS at, @event AS event, pk AS id, kind, name, created_by, request_id,
	remote_address, pk AS row FROM providers WHERE (created_at, pk) > (@at, @row) ORDER BY created_at, pk LIMIT @limit`

// eventSources name no column that has a secret. Where times are texts they sort as such, since all are in UTC.
func (s *Store) eventSources() []eventSource {
	providers := providersByPK
	if s.database.IsShared() {
		providers = providersByTime
	}
	return []eventSource{
		{EventProviderCreated, providers},
		{EventTokenCreated, `SELECT created_at AS at, @event AS event, id, name, id AS row FROM tokens
			WHERE (created_at, id) > (@at, @row) ORDER BY created_at, id LIMIT @limit`},
		{EventTokenRevoked, `SELECT revoked_at AS at, @event AS event, id, name, id AS row FROM tokens
			WHERE (revoked_at, id) > (@at, @row) ORDER BY revoked_at, id LIMIT @limit`},
		{"", `SELECT at, event, key_id AS id, id AS row FROM key_events
			WHERE (at, id) > (@at, @row) ORDER BY at, id LIMIT @limit`},
	}
}

// eventsOf reads the events of a source since a time, each page in a statement of its own.
func (s *Store) eventsOf(ctx context.Context, source eventSource, since time.Time) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		last := eventRow{Event: Event{At: since}}
		for {
			var page []eventRow
			err := s.reader(ctx).Raw(source.query, map[string]any{
				"event": source.event, "since": since, "at": last.At, "row": last.Row, "limit": pageSize,
			}).Scan(&page).Error
			if err != nil {
				yield(Event{}, fmt.Errorf("read events: %w", err))
				return
			}
			for _, row := range page {
				if !yield(row.Event, nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			last = page[len(page)-1]
		}
	}
}

// eventHead is a sequence of events with the one that comes next.
type eventHead struct {
	next  func() (Event, error, bool)
	event *Event
	ended bool
}

// peek returns the next event, or nil at the end.
func (h *eventHead) peek() (*Event, error) {
	if h.event != nil || h.ended {
		return h.event, nil
	}
	event, err, ok := h.next()
	if h.ended = !ok; h.ended || err != nil {
		return nil, err
	}
	h.event = &event
	return h.event, nil
}

// takeOldest takes the oldest event off the sequences; nil when all have ended.
func takeOldest(heads []*eventHead) (*Event, error) {
	var from *eventHead
	for _, head := range heads {
		event, err := head.peek()
		if err != nil {
			return nil, err
		}
		if event != nil && (from == nil || event.At.Before(from.event.At)) {
			from = head
		}
	}
	if from == nil {
		return nil, nil //nolint:nilnil // The end of a sequence is no error.
	}
	oldest := from.event
	from.event = nil
	return oldest, nil
}
