package store

import (
	"time"

	"gorm.io/gorm"
)

// Kind tells the two kinds of provider apart.
type Kind string

// The kinds of provider.
const (
	KindOAuth2             Kind = "oauth2"
	KindWorkspaceDirectory Kind = "workspace_directory"
)

// Creation is the common row of a provider of either kind, and the audit record of its create: who asked for what, and
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
	// RemoteAddress is the IP address that the request came from.
	RemoteAddress string
	// IdempotencyKey and Fingerprint are nil where the create had no key. The fingerprint is the HMAC of the body's
	// digest.
	IdempotencyKey *string
	Fingerprint    []byte
}

// TableName names the table for GORM.
func (Creation) TableName() string { return "providers" }

// Provider is what providers of both kinds have in common.
type Provider struct {
	Creation `gorm:"embedded"`
	// Application is the one that this provider serves; the zero value while there is none.
	Application Application `gorm:"foreignKey:ProviderPK;references:PK"`
	// Backchannel leads to the application that this provider serves as a backchannel; the zero value while there is none.
	Backchannel Backchannel `gorm:"foreignKey:ProviderPK;references:PK"`
}

// TableName names the table for GORM.
func (Provider) TableName() string { return "providers" }

// Common returns what the provider has in common with those of the other kind.
func (p Provider) Common() Provider { return p }

// Record is a stored provider of either kind: an OAuth2Provider or a WorkspaceDirectoryProvider.
type Record interface {
	// Common returns what providers of both kinds have.
	Common() Provider
}

// Application is what providers are linked to.
type Application struct {
	ID int32 `gorm:"primaryKey"`
	// Slug is the internal name, used in URLs; unique.
	Slug string
	// Name is the display name; not unique.
	Name string
	// ProviderPK is the OAuth2 provider that serves the application; nil while there is none.
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

// now is the time in UTC in whole microseconds, which every database keeps.
func now() time.Time {
	return time.Now().UTC().Truncate(time.Microsecond)
}

// withApplications makes a query of providers load the applications that they are linked to.
func withApplications(db *gorm.DB) *gorm.DB {
	return db.Preload("Application").Preload("Backchannel.Application")
}
