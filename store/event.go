package store

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gorm.io/gorm"
)

// EventKind is a kind of event.
type EventKind string

// The kinds of event.
const (
	EventProviderCreated EventKind = "provider created"
	EventProviderDeleted EventKind = "provider deleted"
	EventProviderUpdated EventKind = "provider updated"
	EventProviderRenamed EventKind = "provider renamed"
	EventTokenCreated    EventKind = "token created"
	EventTokenRenewed    EventKind = "token renewed"
	EventTokenRevoked    EventKind = "token revoked"
	EventKeyCreated      EventKind = "key created"
	EventKeyRotated      EventKind = "key rotated"
	EventKeyRemoved      EventKind = "key removed"
	EventKeysRewrapped   EventKind = "keys rewrapped"
	EventSecretsResealed EventKind = "secrets resealed"
)

// Event is an entry of the audit trail. It contains no secrets.
type Event struct {
	// At is in UTC, in whole microseconds.
	At    Time      `json:"at"`
	Event EventKind `json:"event"`
	// ID is the pk of the provider, or the id of the token or the key.
	ID int64 `json:"id"`
	// Kind is the kind of the provider; "" for other events.
	Kind Kind `json:"kind,omitempty"`
	// Name is the name of the provider or of the caller of the token; "" for keys.
	Name string `json:"name,omitempty"`
	// CreatedBy is the caller that created the provider; RequestID and RemoteAddress belong to its request. All are "" for
	// events caused by commands.
	CreatedBy     string `json:"created_by,omitempty"`
	RequestID     string `json:"request_id,omitempty"`
	RemoteAddress string `json:"remote_address,omitempty"`
	// User is the operating system user who changed or deleted a provider; "" if unknown, and for other events.
	User string `gorm:"column:os_user" json:"user,omitempty"`
	// Fields are the names of the settings that an update changed.
	Fields List[string] `json:"fields,omitempty"`
	// Cursor is the position of the event in the order of Events.
	Cursor EventCursor `gorm:"-" json:"cursor"`
	// Row is the position of the event in Log.
	Row LogRow `gorm:"-" json:"-"`
	// Leaf is the leaf of the record after the event or, for a deletion, before it. It is nil for events of tokens and
	// keys, and in Events.
	Leaf *Leaf `gorm:"-" json:"leaf,omitempty"`
	// Damaged is ErrDamaged if the record cannot be read, and so has no leaf.
	Damaged error `gorm:"-" json:"-"`
}

// maxMicros is the latest time that every database supports: the end of the year 9999.
const maxMicros = 253402300799999999

var errCursor = errors.New("not an event cursor such as 1790000000000000-0-17")

// EventCursor is a position in the order of events. The zero value is before all of them.
type EventCursor struct {
	// micros is the time in microseconds, source the number of the eventSource, and number that of the row.
	micros int64
	source int64
	number int64
}

// MarshalText implements encoding.TextMarshaler.
func (c EventCursor) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d-%d-%d", c.micros, c.source, c.number), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. It returns an error if text is not from MarshalText.
func (c *EventCursor) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), "-")
	if len(parts) != 3 {
		return errCursor
	}
	for i, part := range []*int64{&c.micros, &c.source, &c.number} {
		number, err := strconv.ParseUint(parts[i], 10, 63)
		if err != nil {
			return errCursor
		}
		*part = int64(number)
	}
	if c.micros > maxMicros {
		return errCursor
	}
	return nil
}

// keyEvent is the row of an event of a key.
type keyEvent struct {
	ID    int64 `gorm:"primaryKey"`
	At    Time
	Event EventKind
	KeyID uint32
}

// addKeyEvent inserts an event of a key.
func addKeyEvent(db *gorm.DB, event EventKind, id uint32) error {
	if err := db.Create(&keyEvent{At: now(), Event: event, KeyID: id}).Error; err != nil {
		return fmt.Errorf("insert event %s: %w", event, err)
	}
	return nil
}
