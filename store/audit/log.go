// Package audit reads the log of events together with the records that they are about, and finds records that are
// damaged or were changed without an event. It changes nothing.
//
// Start with Log.Pages; audited.go compares events with records.
package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/keyset"
)

// ErrEnded means that the log of events ends before the one to start after: an older backup was restored.
var ErrEnded = errors.New("the log of events ends")

// Log is the log of the events of a database, with the states of its records. It is safe for concurrent use.
type Log struct {
	database database.Database
	keys     *keyset.Keys
	// id identifies the database that was opened.
	id []byte
}

// New returns the log of a database. Its keys were loaded when it was opened.
func New(db database.Database, keys *keyset.Keys, loaded *keyset.Loaded) *Log {
	return &Log{database: db, keys: keys, id: loaded.DatabaseID}
}

// Cursor is a position in the log: the last event before it, and when it happened. A zero At is not compared.
type Cursor struct {
	ID int64
	At database.Time
}

// Page is entries of the log, ordered by ID.
type Page struct {
	Entries []Entry
	// End is the position up to which all events that were selected have been returned. It has the time of its event.
	End Cursor
}

// Entry is an event in the log. For an event of a provider or a token, it says what its record is like now.
type Entry struct {
	event.Event
	*State `gorm:"-"`
	// Database is the ID of the store.
	Database uint32 `gorm:"->" json:"database"`
	// IsCurrent is true if no later event has changed or deleted the record.
	IsCurrent bool `gorm:"->" json:"-"`
	// Damaged is ErrDamaged if the record is unreadable.
	Damaged error `gorm:"-" json:"-"`
}

// State is the state of a provider or a token.
type State struct {
	// Digest is the digest of its record; nil if there is none.
	Digest *string `json:"digest"`
	// Record is why there is no digest: Deleted or Unreadable.
	Record string `json:"record,omitempty"`
}

// Why there is no digest.
const (
	Deleted    = "deleted"
	Unreadable = "unreadable"
)

const (
	// pageSize is the number of events in a page.
	pageSize = 100
	// searchSize is the number of events that a page searches with a filter, so that it takes little time.
	searchSize = 10_000
	// recordsAtOnce is the number of records in memory, which have at most 1 MiB each.
	recordsAtOnce = 25
)

// Pages returns the events after a cursor that a filter selects, page by page, ordered by ID: none with a lower ID is
// committed later, and none that it returns is lost with a server. It waits for open transactions, and calls waiting if
// one takes long, with a description of it. Without a filter, the entries have the states of their records.
//
// On ErrUnavailable, ErrReplaced and ErrEnded the sequence ends.
func (l *Log) Pages(
	ctx context.Context, filter event.Filter, after Cursor, waiting func(transaction string),
) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		end, err := l.database.SettledEvent(ctx, waiting)
		// The event at the end of the log can have the ID of the cursor and be another one.
		for err == nil && (after.ID != end.ID || !after.At.Equal(end.At.Time)) {
			var page Page
			if page, err = l.page(ctx, filter, after, end); err != nil {
				break
			}
			if after = page.End; !yield(page, nil) {
				return
			}
		}
		if err != nil {
			yield(Page{}, fmt.Errorf("read events: %w", err))
		}
	}
}

// page returns the first events after a cursor, up to the end.
func (l *Log) page(
	ctx context.Context, filter event.Filter, after Cursor, end database.LogEnd,
) (page Page, err error) {
	err = l.database.Read(ctx, func(tx *gorm.DB) (err error) {
		keys, err := l.keys.Latest(tx)
		if err != nil {
			return err
		}
		if err := l.check(tx, keys, after, end); err != nil {
			return err
		}
		size := pageSize
		if filter != (event.Filter{}) {
			size = searchSize
		}
		page.End = Cursor{end.ID, end.At}
		searched := tx.Model(&event.Event{}).Select("id", "at").Where("id > ? AND id <= ?", after.ID, end.ID)
		last := tx.Table("(?) AS searched", searched.Order("id").Limit(size)).Order("id DESC").Limit(1)
		if err := last.Scan(&page.End).Error; err != nil {
			return fmt.Errorf("find the last event of a page: %w", err)
		}
		selected := filter.Where(tx.Model(&event.Event{})).Where("id > ? AND id <= ?", after.ID, page.End.ID).Order("id")
		columns := fmt.Sprintf("*, %s AS is_current, %d AS database", isCurrent, keys.DigestKeyID())
		if err := selected.Select(columns).Find(&page.Entries).Error; err != nil {
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

// check returns why the log cannot be read up to the end.
func (l *Log) check(tx *gorm.DB, keys *keyset.Loaded, after Cursor, end database.LogEnd) error {
	instance, err := l.database.Instance(tx)
	switch {
	case err != nil:
		return err
	case instance != end.Instance:
		return fmt.Errorf("%w: another server has become the primary", database.ErrUnavailable)
	case !bytes.Equal(keys.DatabaseID, l.id):
		return fmt.Errorf("%w: another database has replaced the one that was opened", database.ErrReplaced)
	case after.ID > end.ID:
		return fmt.Errorf("%w with event %d, so event %d does not exist", ErrEnded, end.ID, after.ID)
	case after.At.IsZero():
		return nil
	}
	var found int64
	err = tx.Model(&event.Event{}).Where("id = ? AND at = ?", after.ID, after.At).Count(&found).Error
	if err != nil {
		return fmt.Errorf("find the event of the cursor: %w", err)
	}
	if found == 0 {
		return fmt.Errorf("%w before the event of the cursor; another event now has its id, %d", ErrEnded, after.ID)
	}
	return nil
}
