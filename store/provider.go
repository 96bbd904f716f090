package store

import (
	"time"

	"gorm.io/gorm"
)

// Kind is a kind of provider.
type Kind string

// The kinds of provider.
const (
	KindOAuth2             Kind = "oauth2"
	KindWorkspaceDirectory Kind = "workspace_directory"
)

// Creation is the row that providers of both kinds have, and the audit record of the create: who asked for what, and
// when.
type Creation struct {
	// PK is positive, fits int32 and comes from one sequence for both kinds. Gaps are allowed.
	PK   int32 `gorm:"primaryKey;autoIncrement:false"`
	Kind Kind
	Name string
	// CreatedAt is in UTC, in whole microseconds.
	CreatedAt time.Time
	CreatedBy string
	RequestID string
	// RemoteAddress is the IP address of the client.
	RemoteAddress string
	// IdempotencyKey and Fingerprint are nil if the create had no key. The fingerprint is an HMAC of the body's digest.
	IdempotencyKey *string
	Fingerprint    []byte
}

// TableName returns the table for GORM.
func (Creation) TableName() string { return "providers" }

// Provider holds what providers of both kinds have.
type Provider struct {
	Creation `gorm:"embedded"`
	// Application is the application that the provider serves; the zero value if there is none.
	Application Application `gorm:"foreignKey:ProviderPK;references:PK"`
	// Backchannel links to the application that the provider serves as a backchannel; the zero value if there is none.
	Backchannel Backchannel `gorm:"foreignKey:ProviderPK;references:PK"`
}

// TableName returns the table for GORM.
func (Provider) TableName() string { return "providers" }

// Common returns what providers of both kinds have.
func (p Provider) Common() Provider { return p }

// Record is a stored provider of either kind: an OAuth2Provider or a WorkspaceDirectoryProvider.
type Record interface {
	// Common returns what providers of both kinds have.
	Common() Provider
}

// Application is an application that providers are linked to.
type Application struct {
	ID int32 `gorm:"primaryKey"`
	// Slug is the internal name, used in URLs; unique.
	Slug string
	// Name is the display name; not unique.
	Name string
	// ProviderPK is the OAuth2 provider that serves the application; nil if there is none.
	ProviderPK *int32
	// Backchannels are the providers that serve the application as backchannels.
	Backchannels []Backchannel `gorm:"foreignKey:ApplicationID;references:ID"`
}

// Backchannel links a provider of either kind to the application that it serves as a backchannel.
type Backchannel struct {
	ProviderPK    int32 `gorm:"primaryKey;autoIncrement:false"`
	ApplicationID int32
	Application   Application `gorm:"foreignKey:ApplicationID;references:ID"`
}

// now returns the time in UTC in whole microseconds, the precision of every database.
func now() time.Time {
	return time.Now().UTC().Truncate(time.Microsecond)
}

// withApplications makes a query of providers load their applications.
func withApplications(db *gorm.DB) *gorm.DB {
	return db.Preload("Application").Preload("Backchannel.Application")
}
