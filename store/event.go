package store

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
)

// EventKind is what was done.
type EventKind string

// The kinds of event.
const (
	EventProviderCreated EventKind = "provider created"
	EventProviderDeleted EventKind = "provider deleted"
	EventTokenCreated    EventKind = "token created"
	EventTokenRevoked    EventKind = "token revoked"
	EventKeyCreated      EventKind = "key created"
	EventKeyRotated      EventKind = "key rotated"
	EventKeyAdded        EventKind = "key added"
	EventKeyPromoted     EventKind = "key promoted"
	EventSecretsResealed EventKind = "secrets resealed"
	EventKeyRetired      EventKind = "key retired"
)

// Event is something that was done to the database, with no secret in it.
type Event struct {
	// At is in UTC, in whole microseconds.
	At    time.Time `json:"at"`
	Event EventKind `json:"event"`
	// ID is the pk of the provider, or the id of the token or the key.
	ID int64 `json:"id"`
	// Kind is that of the provider; "" for other events.
	Kind Kind `json:"kind,omitempty"`
	// Name is that of the provider, or the caller that the token is for; "" for keys.
	Name string `json:"name,omitempty"`
	// CreatedBy is the caller who created the provider, and RequestID and RemoteAddress are those of its request. They are
	// "" for what was done on the command line.
	CreatedBy     string `json:"created_by,omitempty"`
	RequestID     string `json:"request_id,omitempty"`
	RemoteAddress string `json:"remote_address,omitempty"`
	// Cursor is the place of the event among all.
	Cursor EventCursor `gorm:"-" json:"cursor"`
}

// maxMicros is the last time that every database knows: the end of the year 9999.
const maxMicros = 253402300799999999

var errCursor = errors.New("not the cursor of an event, such as 1790000000000000-0-17")

// EventCursor is a place in the order of the events. The zero value is before all.
type EventCursor struct {
	// micros is the time in microseconds, source the number of the event's source, and number that of its row.
	micros int64
	source int64
	number int64
}

// MarshalText renders the cursor, for a program that reads the events in pages.
func (c EventCursor) MarshalText() ([]byte, error) {
	return fmt.Appendf(nil, "%d-%d-%d", c.micros, c.source, c.number), nil
}

// UnmarshalText reads what MarshalText wrote.
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
	if c.micros > maxMicros || c.number > math.MaxInt32 {
		return errCursor
	}
	return nil
}

// keyEvent is a row of what was done with the keys.
type keyEvent struct {
	ID    int32 `gorm:"primaryKey"`
	At    time.Time
	Event EventKind
	KeyID uint32
}

// addKeyEvent notes what was done with a key.
func addKeyEvent(db *gorm.DB, event EventKind, id uint32) error {
	if err := db.Create(&keyEvent{At: now(), Event: event, KeyID: id}).Error; err != nil {
		return fmt.Errorf("note %s: %w", event, err)
	}
	return nil
}
