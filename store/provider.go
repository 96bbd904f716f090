package store

import (
	"time"

	"github.com/google/uuid"
)

// Kind tells the two kinds of provider apart.
type Kind string

// The kinds of provider (contract section 2).
const (
	KindOAuth2             Kind = "oauth2"
	KindWorkspaceDirectory Kind = "workspace_directory"
)

// Creation says what a provider is called and who asked for it.
type Creation struct {
	// Name of the provider; not unique.
	Name string
	// CreatedBy is the name of the token that the caller showed.
	CreatedBy string
	// RequestID identifies the exchange in which the provider was created.
	RequestID string
	// IdempotencyKey makes a retry find the record of the first try; nil for none. It is scoped to the caller and the
	// kind.
	IdempotencyKey *string
	// BodyDigest tells bodies apart; it goes with the key, and is not stored as it stands.
	BodyDigest []byte
	// RemoteAddress is the IP address that the request came from.
	RemoteAddress string
}

// Audit is the record of a create: who asked for what, and when. It is a row of its own, common to both kinds.
type Audit struct {
	// PK is positive, fits int32 and comes from one sequence for both kinds. Gaps are allowed.
	PK   int32 `gorm:"primaryKey;autoIncrement:false"`
	Kind Kind
	Name string
	// CreatedAt is in UTC, in whole microseconds.
	CreatedAt time.Time
	CreatedBy string
	RequestID string
	// RemoteAddress is the IP address that the request came from; "" for providers of before it was kept.
	RemoteAddress string
	// IdempotencyKey and Fingerprint are nil where the create had no key. The fingerprint is the HMAC of the body's
	// digest.
	IdempotencyKey *string
	Fingerprint    []byte
}

// TableName names the table for GORM.
func (Audit) TableName() string { return "providers" }

// Provider is what providers of both kinds have in common.
type Provider struct {
	Audit `gorm:"embedded"`
	// Application is the one that this provider serves; the zero value while there is none.
	Application Application `gorm:"foreignKey:ProviderPK;references:PK"`
	// Backchannel leads to the application that this provider serves as a backchannel; the zero value while there is none.
	Backchannel Backchannel `gorm:"foreignKey:ProviderPK;references:PK"`
}

// idempotencyScope is what an idempotency key is unique in, with the key.
type idempotencyScope struct {
	createdBy string
	kind      Kind
	key       string
}

func (a Audit) idempotencyScope() (scope idempotencyScope, hasKey bool) {
	if a.IdempotencyKey == nil {
		return idempotencyScope{}, false
	}
	return idempotencyScope{createdBy: a.CreatedBy, kind: a.Kind, key: *a.IdempotencyKey}, true
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

// OAuth2Settings are the fields of an OAuth2 provider (contract section 2.1), defaults already applied.
type OAuth2Settings struct {
	AuthenticationFlow     *uuid.UUID
	AuthorizationFlow      uuid.UUID
	PropertyMappings       []uuid.UUID `gorm:"serializer:json"`
	ClientType             string
	ClientID               string
	ClientSecret           Secret `gorm:"-"`
	AccessCodeValidity     string
	AccessTokenValidity    string
	RefreshTokenValidity   string
	IncludeClaimsInIDToken bool
	SigningKey             *uuid.UUID
	RedirectURIs           string `gorm:"column:redirect_uris"`
	SubMode                string
	IssuerMode             string
	JWKSSources            []uuid.UUID `gorm:"column:jwks_sources;serializer:json"`
}

// OAuth2Provider is a stored OAuth2 provider.
type OAuth2Provider struct {
	Provider
	OAuth2Settings
}

// WorkspaceDirectorySettings are the fields of a workspace directory-sync provider (contract section 2.2), defaults
// already applied.
type WorkspaceDirectorySettings struct {
	PropertyMappings      []uuid.UUID `gorm:"serializer:json"`
	PropertyMappingsGroup []uuid.UUID `gorm:"serializer:json"`
	DelegatedSubject      string
	// Credentials is one JSON object, kept as it stands.
	Credentials                Secret `gorm:"-"`
	Scopes                     string
	ExcludeUsersServiceAccount bool
	FilterGroup                *uuid.UUID
	UserDeleteAction           string
	GroupDeleteAction          string
	DefaultGroupEmailDomain    string
}

// WorkspaceDirectoryProvider is a stored workspace directory-sync provider.
type WorkspaceDirectoryProvider struct {
	Provider
	WorkspaceDirectorySettings
}
