package store

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/keyset"
)

// Cursor is a position in the log: the last event before it, and when it happened. A zero At is not compared.
type Cursor struct {
	ID int64
	At database.Time
}

// LogPage is entries of the log, ordered by ID.
type LogPage struct {
	Entries []LogEntry
	// End is the position up to which all events that were selected have been returned. It has the time of its event.
	End Cursor
}

// LogEntry is an event in the log. For an event of a provider or a token, it says what its record is like now.
type LogEntry struct {
	event.Event
	*RecordState `gorm:"-"`
	// IsCurrent is true if no later event has changed or deleted the record.
	IsCurrent bool `gorm:"->" json:"-"`
	// Damaged is ErrDamaged if the record is unreadable.
	Damaged error `gorm:"-" json:"-"`
}

// RecordState is the state of a provider or a token.
type RecordState struct {
	// Digest is the digest of its record; nil if there is none.
	Digest *string `json:"digest"`
	// Record is why there is no digest: RecordDeleted or RecordUnreadable.
	Record string `json:"record,omitempty"`
}

// Why there is no digest.
const (
	RecordDeleted    = "deleted"
	RecordUnreadable = "unreadable"
)

const (
	// logPageSize is the number of events in a page.
	logPageSize = 100
	// logRange is the number of events that a page searches with a filter, so that it takes little time.
	logRange = 10_000
	// recordsAtOnce is the number of records in memory, which have at most 1 MiB each.
	recordsAtOnce = 25
)

// Log returns the events after a cursor that a filter selects, page by page, ordered by ID: none with a lower ID is
// committed later, and none that it returns is lost with a server. It waits for open transactions, and calls waiting if
// one takes long, with a description of it. Without a filter, the entries have the states of their records.
//
// On ErrUnavailable, ErrReplaced and ErrLogEnded the sequence ends.
func (s *Store) Log(
	ctx context.Context, filter event.Filter, after Cursor, waiting func(transaction string),
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
	ctx context.Context, filter event.Filter, after Cursor, end database.LogEnd,
) (page LogPage, err error) {
	err = s.database.Read(ctx, func(tx *gorm.DB) (err error) {
		keys, err := s.Keys.Latest(tx)
		if err != nil {
			return err
		}
		if err := s.checkLog(tx, keys, after, end); err != nil {
			return err
		}
		size := logPageSize
		if filter != (event.Filter{}) {
			size = logRange
		}
		page.End = Cursor{end.ID, end.At}
		searched := tx.Model(&event.Event{}).Select("id", "at").Where("id > ? AND id <= ?", after.ID, end.ID)
		last := tx.Table("(?) AS searched", searched.Order("id").Limit(size)).Order("id DESC").Limit(1)
		if err := last.Scan(&page.End).Error; err != nil {
			return fmt.Errorf("find the last event of a page: %w", err)
		}
		selected := filter.Where(tx.Model(&event.Event{})).Where("id > ? AND id <= ?", after.ID, page.End.ID).Order("id")
		if err := selected.Select("*, " + isCurrent + " AS is_current").Find(&page.Entries).Error; err != nil {
			return err
		}
		if filter != (event.Filter{}) {
			return nil
		}
		for _, a := range auditedRecords() {
			if err := a.addStates(tx, keys, page.Entries); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

// checkLog returns why the log cannot be read up to the end.
func (s *Store) checkLog(tx *gorm.DB, keys *keyset.Loaded, after Cursor, end database.LogEnd) error {
	instance, err := s.database.Instance(tx)
	switch {
	case err != nil:
		return err
	case instance != end.Instance:
		return fmt.Errorf("%w: another server has become the primary", ErrUnavailable)
	case !bytes.Equal(keys.DatabaseID, s.databaseID):
		return fmt.Errorf("%w: another database has replaced the one that was opened", ErrReplaced)
	case after.ID > end.ID:
		return fmt.Errorf("%w with event %d, so event %d does not exist", ErrLogEnded, end.ID, after.ID)
	case after.At.IsZero():
		return nil
	}
	var found int64
	err = tx.Model(&event.Event{}).Where("id = ? AND at = ?", after.ID, after.At).Count(&found).Error
	if err != nil {
		return fmt.Errorf("find the event of the cursor: %w", err)
	}
	if found == 0 {
		return fmt.Errorf("%w before the event of the cursor; another event now has its id, %d", ErrLogEnded, after.ID)
	}
	return nil
}
