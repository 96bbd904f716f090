package store

import (
	"fmt"
	"time"

	"gorm.io/gorm"
)

// EventKind is what was done.
type EventKind string

// The kinds of event.
const (
	EventProviderCreated EventKind = "provider created"
	EventTokenCreated    EventKind = "token created"
	EventTokenRevoked    EventKind = "token revoked"
	EventKeyCreated      EventKind = "key created"
	EventKeyRotated      EventKind = "key rotated"
	EventKeyAdded        EventKind = "key added"
	EventKeyPromoted     EventKind = "key promoted"
	EventSecretsResealed EventKind = "secrets resealed"
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
