// Package records defines the records of providers, with their columns, and reads and compares them. It creates none.
//
// Start with Record in records.go. By its line in visit, in columns.go, a field is stored, read, compared and audited.
package records

import (
	"iter"

	"github.com/google/uuid"

	"example.com/providerd/store/database"
	"example.com/providerd/store/rows"
	"example.com/providerd/store/seal"
)

// Kind is a kind of provider.
type Kind string

// The kinds of provider.
const (
	KindOAuth2             Kind = "oauth2"
	KindWorkspaceDirectory Kind = "workspace_directory"
)

// Generated says which values of a provider the server chose, because the create omitted them.
type Generated int

// The values that the server can choose.
const (
	GeneratedClientID Generated = 1 << iota
	GeneratedSecret
)

// Provider holds what providers of both kinds have: who asked for what, and when.
type Provider struct {
	// PK is positive. Gaps are allowed.
	PK int64 `gorm:"primaryKey"`
	// UID is a UUIDv7 (RFC 9562), which the create chose before the record had a PK.
	UID       uuid.UUID
	Kind      Kind
	Name      string
	CreatedAt database.Time `gorm:"autoCreateTime:false"`
	// CreatedBy is the caller: the name of the access token.
	CreatedBy string
	// RequestID is the X-Request-Id of the request, and RemoteAddress the IP address of the client.
	RequestID     string
	RemoteAddress string
	// IdempotencyKey is nil if the create had none.
	IdempotencyKey *string
	// Sealed is the encrypted secret. Unseal decrypts it.
	Sealed    []byte `gorm:"column:secret"`
	Generated Generated
	// Application is the application that the provider serves; the zero value if there is none.
	Application Application `gorm:"-"`
	// Backchannel links to the application that the provider serves as a backchannel; the zero value if there is none.
	Backchannel Backchannel `gorm:"-"`
}

// Table is the table of providers of both kinds.
const Table = "providers"

// TableName returns the table for GORM.
func (Provider) TableName() string { return Table }

// Common returns what providers of both kinds have.
func (p Provider) Common() Provider { return p }

// OAuth2Settings are the fields of an OAuth2 provider, with defaults applied.
type OAuth2Settings struct {
	ClientID               string
	PropertyMappings       rows.List[uuid.UUID]
	AuthenticationFlow     *uuid.UUID
	AuthorizationFlow      uuid.UUID
	ClientType             string
	ClientSecret           seal.Secret `gorm:"-"`
	AccessCodeValidity     string
	AccessTokenValidity    string
	RefreshTokenValidity   string
	IncludeClaimsInIDToken bool
	SigningKey             *uuid.UUID
	RedirectURIs           string `gorm:"column:redirect_uris"`
	SubMode                string
	IssuerMode             string
	JWKSSources            rows.List[uuid.UUID] `gorm:"column:jwks_sources"`
}

// OAuth2Provider is an OAuth2 provider. Its ClientSecret is set by Unseal.
type OAuth2Provider struct {
	Provider       `gorm:"embedded"`
	OAuth2Settings `gorm:"embedded"`
}

// WorkspaceDirectorySettings are the fields of a workspace directory-sync provider, with defaults applied.
type WorkspaceDirectorySettings struct {
	PropertyMappings      rows.List[uuid.UUID]
	PropertyMappingsGroup rows.List[uuid.UUID]
	DelegatedSubject      string
	// Credentials is a JSON object, kept byte for byte.
	Credentials                seal.Secret `gorm:"-"`
	Scopes                     string
	ExcludeUsersServiceAccount bool
	FilterGroup                *uuid.UUID
	UserDeleteAction           string
	GroupDeleteAction          string
	DefaultGroupEmailDomain    string
}

// WorkspaceDirectoryProvider is a workspace directory-sync provider. Its Credentials are set by Unseal.
type WorkspaceDirectoryProvider struct {
	Provider                   `gorm:"embedded"`
	WorkspaceDirectorySettings `gorm:"embedded"`
}

// Record is a provider of either kind: an OAuth2Provider or a WorkspaceDirectoryProvider.
type Record interface {
	// Common returns what providers of both kinds have.
	Common() Provider
	// UniqueClientID is the client_id, which no other provider may have; nil for none.
	UniqueClientID() *string
	// secret returns the name of the field that is secret, and its value.
	secret() (field string, value seal.Secret)
	// with returns the record with other common values and another secret.
	with(common Provider, secret seal.Secret) Record
	// settings returns the columns of the kind that a visitor collects.
	settings(v visitor) []Column
}

// UniqueClientID implements Record.
func (r OAuth2Provider) UniqueClientID() *string { return new(r.ClientID) }

// UniqueClientID implements Record.
func (WorkspaceDirectoryProvider) UniqueClientID() *string { return nil }

func (r OAuth2Provider) secret() (string, seal.Secret) { return "client_secret", r.ClientSecret }

func (r WorkspaceDirectoryProvider) secret() (string, seal.Secret) {
	return "credentials", r.Credentials
}

func (r OAuth2Provider) with(common Provider, secret seal.Secret) Record {
	r.Provider, r.ClientSecret = common, secret
	return r
}

func (r WorkspaceDirectoryProvider) with(common Provider, secret seal.Secret) Record {
	r.Provider, r.Credentials = common, secret
	return r
}

// Application is an application that providers are linked to.
type Application struct {
	ID int64 `gorm:"primaryKey"`
	// Slug is the internal name, used in URLs; unique.
	Slug string
	// Name is the display name; not unique.
	Name string
	// ProviderPK is the OAuth2 provider that serves the application; nil if there is none.
	ProviderPK *int64
	// Backchannels are the providers that serve the application as backchannels.
	Backchannels []Backchannel `gorm:"foreignKey:ApplicationID;references:ID"`
}

// The roles in which a provider serves an application, as events name them.
const (
	RoleApplication = "application"
	RoleBackchannel = "backchannel"
)

// Links yields the pk and the role of each provider that is linked.
func (a Application) Links() iter.Seq2[int64, string] {
	return func(yield func(int64, string) bool) {
		if a.ProviderPK != nil && !yield(*a.ProviderPK, RoleApplication) {
			return
		}
		for _, link := range a.Backchannels {
			if !yield(link.ProviderPK, RoleBackchannel) {
				return
			}
		}
	}
}

// Backchannel links a provider of either kind to the application that it serves as a backchannel.
type Backchannel struct {
	ProviderPK    int64 `gorm:"primaryKey;autoIncrement:false"`
	ApplicationID int64
	Application   Application `gorm:"foreignKey:ApplicationID;references:ID"`
}
