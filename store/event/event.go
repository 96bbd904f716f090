// Package event adds events to the log of a database, and lists them. It knows nothing of what they are about.
//
// Start with Event and Add.
package event

import (
	"context"
	"database/sql/driver"
	"iter"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/rows"
)

// Type is what happened, such as ProviderCreated.
type Type string

// The types of events. A trigger of the database adds ProviderCreated.
const (
	ProviderCreated  Type = "provider created"
	ProviderUpdated  Type = "provider updated"
	ProviderRenamed  Type = "provider renamed"
	ProviderDeleted  Type = "provider deleted"
	ProviderLinked   Type = "provider linked"
	ProviderUnlinked Type = "provider unlinked"
	TokenCreated     Type = "token created"
	TokenRenewed     Type = "token renewed"
	TokenRevoked     Type = "token revoked"
	KeyCreated       Type = "key created"
	KeyRotated       Type = "key rotated"
	KeyRemoved       Type = "key removed"
	KeysRewrapped    Type = "keys rewrapped"
	SecretsResealed  Type = "secrets resealed"
	DatabaseCopied   Type = "database copied"
	DatabaseRestored Type = "database restored"
)

// Event is what happened to a provider, token, key or the database, in the transaction that did it, without values.
type Event struct {
	// ID is the position in the log. Gaps are allowed.
	ID int64 `gorm:"primaryKey" json:"id"`
	// At is when the transaction made the change, which can be before the time of an event with a lower ID.
	At    database.Time `json:"at"`
	Event Type          `json:"event"`
	// Subject is the pk of the provider, or the id of the token or the key; 0 for the database.
	Subject int64 `json:"subject,omitempty"`
	// Kind of the provider; "" for other events.
	Kind string `json:"kind,omitempty"`
	// Name is the name of the token; "" for other events.
	Name string `json:"name,omitempty"`
	// Fields are the names of the fields that an update changed, or the kind of link.
	Fields FieldNames `json:"fields,omitempty"`
	// Caller is the name of the token, RequestID the X-Request-Id, and RemoteAddress the IP address; "" for commands.
	Caller        string `json:"caller,omitempty"`
	RequestID     string `json:"request_id,omitempty"`
	RemoteAddress string `json:"remote_address,omitempty"`
	// OSUser is the user of the operating system who ran the command; "" for requests.
	OSUser string `gorm:"column:os_user" json:"os_user,omitempty"`
}

// About returns the first word of the event: "provider" or "token", if it has one as its subject.
func (e Event) About() string {
	word, _, _ := strings.Cut(string(e.Event), " ")
	return word
}

// Table is the table of events.
const Table = "events"

// IsIndexed is the condition of the index of events. Creates are not in it, because it would slow them down.
const IsIndexed = "event <> 'provider created'"

// TableName returns the table for GORM.
func (Event) TableName() string { return Table }

// FieldNames are names of fields, stored as a string that separates them by commas. Any string can be read.
type FieldNames []string

// Scan implements sql.Scanner.
func (n *FieldNames) Scan(stored any) error {
	*n = nil
	if text, _ := stored.(string); text != "" {
		*n = strings.Split(text, ",")
	}
	return nil
}

// Value implements driver.Valuer.
func (n FieldNames) Value() (driver.Value, error) { return strings.Join(n, ","), nil }

// Add adds events of a command to the log, in the transaction of what they describe.
func Add(tx *gorm.DB, events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	at, by := database.Now(), osUser()
	for i := range events {
		events[i].At, events[i].OSUser = at, by
	}
	return tx.Session(&gorm.Session{NewDB: true}).CreateInBatches(&events, rows.PageSize).Error
}

// AddRestored adds the event that a database was restored.
func AddRestored(tx *gorm.DB) error { return Add(tx, Event{Event: DatabaseRestored}) }

// osUser returns the name of the user who runs the program, or the user id if that has no name.
func osUser() string {
	current, err := user.Current()
	if err != nil {
		return strconv.Itoa(os.Getuid())
	}
	return current.Username
}

// Filter selects events. The zero value selects all.
type Filter struct {
	// Since is the earliest time; the zero value for any.
	Since time.Time
	// Kind is the kind of provider, and PK the provider; "" and 0 for any, and for other events.
	Kind string
	PK   int64
	// By is the caller or the user of the operating system; "" for any.
	By string
	// RequestID is the X-Request-Id; "" for any.
	RequestID string
}

// Where adds the conditions of the filter to a query.
func (f Filter) Where(query *gorm.DB) *gorm.DB {
	// Zero values are no conditions.
	query = query.Where(&Event{Kind: f.Kind, RequestID: f.RequestID})
	if !f.Since.IsZero() {
		query = query.Where("at >= ?", database.TimeOf(f.Since))
	}
	if f.PK != 0 {
		query = query.Where("subject = ? AND kind <> ''", f.PK)
	}
	if f.By != "" {
		query = query.Where("(caller = ? OR os_user = ?)", f.By, f.By)
	}
	return query
}

// Events are the events of a database. They are safe for concurrent use.
type Events struct{ database database.Readable }

// New returns the events of a database.
func New(db database.Readable) *Events { return &Events{database: db} }

// Newest returns the highest ID of an event; 0 if there is none. It returns ErrUnavailable.
func (e *Events) Newest(ctx context.Context) (id int64, err error) {
	err = e.database.Reader().WithContext(ctx).Model(&Event{}).Select("coalesce(max(id), 0)").Scan(&id).Error
	return id, database.Wrap("find the newest event", err)
}

// List returns the events with an ID above after that a filter selects, ordered by ID. Over PostgreSQL, one with a
// lower ID can be committed later, and is then left out: see audit.Log. On ErrUnavailable the sequence ends.
func (e *Events) List(ctx context.Context, filter Filter, after int64) iter.Seq2[Event, error] {
	selected := filter.Where(e.database.Reader().WithContext(ctx))
	return rows.Pages(selected, "id", after, func(e Event) int64 { return e.ID }, rows.Find)
}
