package store

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// Cursor is a position in the log: the last event before it, and when it happened. A zero At is not compared.
type Cursor struct {
	ID int64
	At Time
}

// LogPage is entries of the log, ordered by ID.
type LogPage struct {
	Entries []LogEntry
	// End is the position up to which all events that were selected have been returned. It has the time of its event.
	End Cursor
}

// LogEntry is an event in the log. For an event of a provider, it says what its record is like now.
type LogEntry struct {
	Event
	*RecordState
	// IsCurrent is true if no later event has changed or deleted the record.
	IsCurrent bool `json:"-"`
	// Damaged is ErrDamaged if the record is unreadable.
	Damaged error `json:"-"`
}

// RecordState is the state of a provider.
type RecordState struct {
	// Digest is the digest of its record; nil if there is none.
	Digest *string `json:"digest"`
	// Record is why there is no digest: RecordDeleted or RecordUnreadable.
	Record string `json:"record,omitempty"`
}

// Why a provider has no digest.
const (
	RecordDeleted    = "deleted"
	RecordUnreadable = "unreadable"
)

const (
	// logPageSize is the number of entries in a page, whose records have at most 1 MiB each.
	logPageSize = 100
	// logRange is the number of IDs that a page searches with a filter, so that it takes little time.
	logRange = 10_000
	// recordsAtOnce is the number of records in memory.
	recordsAtOnce = 25
)

// Log returns the events after a cursor that a filter selects, page by page, ordered by ID: none with a lower ID is
// committed later, and none that it returns is lost with a server. It waits for open transactions, and calls waiting if
// one takes long, with a description of it. Without a filter, the entries of providers have their records.
//
// On ErrUnavailable, ErrReplaced and ErrLogEnded the sequence ends.
func (s *Store) Log(
	ctx context.Context, filter EventFilter, after Cursor, waiting func(transaction string),
) iter.Seq2[LogPage, error] {
	return func(yield func(LogPage, error) bool) {
		end, err := s.database.SettledEvent(ctx, waiting)
		// The event at the end of the log can have the ID of the cursor and be another one.
		for err == nil && (after.ID != end.ID || !after.At.Equal(end.At.Time)) {
			var page LogPage
			if page, err = s.logPage(ctx, filter, after, end); err != nil {
				break
			}
			if after = page.End; !yield(page, nil) {
				return
			}
		}
		if err != nil {
			yield(LogPage{}, fmt.Errorf("read events: %w", err))
		}
	}
}

// logPage returns the first events after a cursor, up to the end.
func (s *Store) logPage(
	ctx context.Context, filter EventFilter, after Cursor, end database.LogEnd,
) (page LogPage, err error) {
	err = s.database.Read(ctx, func(tx *gorm.DB) (err error) {
		keys, err := s.keys.latest(tx)
		if err != nil {
			return err
		}
		if err := s.checkLog(tx, keys, after, end); err != nil {
			return err
		}
		upTo, err := searchedTo(tx, filter, after, end)
		if err != nil {
			return err
		}
		var events []Event
		selected := filter.where(tx).Where("id > ? AND id <= ?", after.ID, upTo)
		err = selected.Order("id").Limit(logPageSize).Find(&events).Error
		if err != nil {
			return err
		}
		page.Entries = make([]LogEntry, len(events))
		for i, event := range events {
			page.Entries[i].Event = event
		}
		if len(events) == logPageSize {
			upTo = events[len(events)-1].ID
		}
		if page.End, err = lastEvent(tx, upTo); err != nil {
			return err
		}
		if filter != (EventFilter{}) {
			return nil
		}
		return addRecords(tx, keys, page.Entries)
	})
	return page, err
}

// searchedTo returns the ID up to which a page is searched. A filter may select no event for long.
func searchedTo(tx *gorm.DB, filter EventFilter, after Cursor, end database.LogEnd) (int64, error) {
	if filter == (EventFilter{}) {
		return end.ID, nil
	}
	first := end.ID
	query := tx.Model(&Event{}).Where("id > ? AND id <= ?", after.ID, end.ID)
	if err := query.Select("coalesce(min(id), ?)", end.ID).Scan(&first).Error; err != nil {
		return 0, fmt.Errorf("find the next event: %w", err)
	}
	if end.ID-first > logRange {
		return first + logRange, nil
	}
	return end.ID, nil
}

// checkLog returns why the log cannot be read up to the end.
func (s *Store) checkLog(tx *gorm.DB, keys *loadedKeys, after Cursor, end database.LogEnd) error {
	instance, err := s.database.Instance(tx)
	switch {
	case err != nil:
		return err
	case instance != end.Instance:
		return fmt.Errorf("%w: another server has become the primary", ErrUnavailable)
	case !bytes.Equal(keys.databaseID, s.databaseID):
		return fmt.Errorf("%w: another database has replaced the one that was opened", ErrReplaced)
	case after.ID > end.ID:
		return fmt.Errorf("%w with event %d, so event %d does not exist", ErrLogEnded, end.ID, after.ID)
	}
	for _, known := range []Cursor{after, {end.ID, end.At}} {
		stored, err := lastEvent(tx, known.ID)
		if err != nil {
			return err
		}
		if !known.At.IsZero() && (stored.ID != known.ID || !stored.At.Equal(known.At.Time)) {
			return fmt.Errorf("%w before the event of the cursor; another event now has its id, %d", ErrLogEnded, known.ID)
		}
	}
	return nil
}

// lastEvent returns the position after the last event up to an ID.
func lastEvent(tx *gorm.DB, upTo int64) (Cursor, error) {
	var last Event
	if err := tx.Select("id", "at").Where("id <= ?", upTo).Order("id DESC").Limit(1).Find(&last).Error; err != nil {
		return Cursor{}, fmt.Errorf("find the last event: %w", err)
	}
	return Cursor{last.ID, last.At}, nil
}

// addRecords adds the states of the records to the events of providers.
func addRecords(tx *gorm.DB, keys *loadedKeys, page []LogEntry) error {
	var pks []int64
	for _, entry := range page {
		if entry.Kind != "" {
			pks = append(pks, entry.Subject)
		}
	}
	if len(pks) == 0 {
		return nil
	}
	digests, err := digestsIn(tx, keys, pks)
	if err != nil {
		return err
	}
	last, err := lastChanges(tx, pks)
	if err != nil {
		return err
	}
	for i := range page {
		entry := &page[i]
		if entry.Kind == "" {
			continue
		}
		entry.IsCurrent = entry.ID >= last[entry.Subject]
		entry.RecordState = &RecordState{Record: RecordDeleted}
		switch digest, ok := digests[entry.Subject]; {
		case !ok:
		case digest.damaged != nil:
			entry.Record, entry.Damaged = RecordUnreadable, digest.damaged
		default:
			entry.Record, entry.Digest = "", &digest.value
		}
	}
	return nil
}

// digestsIn returns the digests of the stored records with these pks, or why they cannot be read.
func digestsIn(tx *gorm.DB, keys *loadedKeys, pks []int64) (map[int64]readable[string], error) {
	digests := map[int64]readable[string]{}
	for chunk := range slices.Chunk(pks, recordsAtOnce) {
		rows, err := readRows(tx.Model(&Provider{}).Where("pk IN ?", chunk), scanRecord)
		if err != nil {
			return nil, fmt.Errorf("read providers: %w", err)
		}
		for _, row := range rows {
			digest, err := digestOf(keys, row)
			digests[row.value.Common().PK] = readable[string]{digest, err}
		}
	}
	return digests, nil
}

// lastChanges returns the last events that have changed or deleted the records of providers.
func lastChanges(tx *gorm.DB, pks []int64) (map[int64]int64, error) {
	changes := []EventKind{EventProviderUpdated, EventProviderRenamed, EventProviderDeleted}
	var rows []struct{ Subject, Last int64 }
	err := tx.Model(&Event{}).Select("subject, max(id) AS last").
		Where("event IN ? AND subject IN ? AND "+isIndexed, changes, pks).Group("subject").Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("find changes: %w", err)
	}
	last := map[int64]int64{}
	for _, row := range rows {
		last[row.Subject] = row.Last
	}
	return last, nil
}

// Contradiction is something about a provider that only another program can have written.
type Contradiction struct {
	PK int64
	// Detail says what it is, after the words "provider PK".
	Detail string
}

// contradictions are searches for the pks of providers, and what they find. PostgreSQL would run NOT IN for each row.
func contradictions() []struct{ query, detail string } {
	const created = "SELECT subject FROM events WHERE event = 'provider created'"
	const deleted = "SELECT subject FROM events WHERE event = 'provider deleted'"
	const stored = "SELECT pk FROM providers"
	return []struct{ query, detail string }{
		{stored + " EXCEPT " + created + " ORDER BY 1", "was inserted without an event"},
		{created + " EXCEPT " + deleted + " EXCEPT " + stored + " ORDER BY 1", "was removed without an event"},
		{stored + " INTERSECT " + deleted + " ORDER BY 1", "is stored, although it was deleted"},
		{created + " GROUP BY subject HAVING count(*) > 1 ORDER BY 1", "was created more than once"},
	}
}

// Contradictions returns records that were inserted, removed or stored again without an event. On ErrUnavailable the
// sequence ends.
func (s *Store) Contradictions(ctx context.Context) iter.Seq2[Contradiction, error] {
	return func(yield func(Contradiction, error) bool) {
		for _, search := range contradictions() {
			var pks []int64
			if err := s.reader(ctx).Raw(search.query).Scan(&pks).Error; err != nil {
				yield(Contradiction{}, fmt.Errorf("compare records with events: %w", err))
				return
			}
			for _, pk := range pks {
				if !yield(Contradiction{pk, search.detail}, nil) {
					return
				}
			}
		}
	}
}
