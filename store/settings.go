package store

import (
	"fmt"

	"github.com/google/uuid"

	"example.com/providerd/store/seal"
)

// settings are the fields specific to a kind of provider: *OAuth2Settings or *WorkspaceDirectorySettings.
type settings interface {
	kind() Kind
	// uniqueValue is a value that no other provider of the kind may have; "" for none.
	uniqueValue() string
	// secret returns the secret and its column.
	secret() (sealedColumn, Secret)
	// addRow seals the secret and adds the row of the provider.
	addRow(rows *kindRows, keys *seal.Keys, pk int32) error
}

// kindRow is the row of a provider of one kind.
type kindRow interface {
	pk() int32
	// record returns the provider, with its secret unsealed. It returns ErrDamaged.
	record(common Provider, keys *seal.Keys) (Record, error)
}

// OAuth2Settings are the fields of an OAuth2 provider, with defaults applied.
type OAuth2Settings struct {
	AuthenticationFlow     *uuid.UUID
	AuthorizationFlow      uuid.UUID
	PropertyMappings       List[uuid.UUID]
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
	JWKSSources            List[uuid.UUID] `gorm:"column:jwks_sources"`
}

// OAuth2Provider is a stored OAuth2 provider.
type OAuth2Provider struct {
	Provider
	OAuth2Settings
}

// WorkspaceDirectorySettings are the fields of a workspace directory-sync provider, with defaults applied.
type WorkspaceDirectorySettings struct {
	PropertyMappings      List[uuid.UUID]
	PropertyMappingsGroup List[uuid.UUID]
	DelegatedSubject      string
	// Credentials is a JSON object, kept byte for byte.
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

// Secret is a string that cannot be printed, formatted, logged or marshaled by accident. Only its method Reveal returns
// it.
type Secret = seal.Secret

// NewSecret returns text as a Secret. The zero Secret is "".
func NewSecret(text string) Secret { return seal.NewSecret(text) }

// The tables of the two kinds of provider.
const (
	oauth2Table    = "oauth2_providers"
	directoryTable = "workspace_directory_providers"
)

// clientSecrets and credentials return the columns that hold sealed secrets.
func clientSecrets() sealedColumn { return sealedColumn{oauth2Table, "client_secret"} }

func credentials() sealedColumn { return sealedColumn{directoryTable, "credentials"} }

// kindRows are the rows of a batch by kind.
type kindRows struct {
	oauth2      []*oauth2Row
	directories []*workspaceDirectoryRow
}

// all returns the rows of all kinds.
func (r kindRows) all() []any {
	var rows []any
	for _, row := range r.oauth2 {
		rows = append(rows, row)
	}
	for _, row := range r.directories {
		rows = append(rows, row)
	}
	return rows
}

// oauth2Row is the row of an OAuth2 provider, with its secret sealed.
type oauth2Row struct {
	PK                 int32 `gorm:"primaryKey;autoIncrement:false"`
	OAuth2Settings     `gorm:"embedded"`
	SealedClientSecret []byte `gorm:"column:client_secret"`
}

// TableName returns the table for GORM.
func (oauth2Row) TableName() string { return oauth2Table }

func (*OAuth2Settings) kind() Kind { return KindOAuth2 }

func (s *OAuth2Settings) uniqueValue() string { return s.ClientID }

func (s *OAuth2Settings) secret() (sealedColumn, Secret) { return clientSecrets(), s.ClientSecret }

func (s *OAuth2Settings) addRow(rows *kindRows, keys *seal.Keys, pk int32) error {
	sealed, err := keys.Seal(s.ClientSecret, clientSecrets().place(pk))
	if err != nil {
		return fmt.Errorf("seal secret: %w", err)
	}
	rows.oauth2 = append(rows.oauth2, &oauth2Row{PK: pk, OAuth2Settings: *s, SealedClientSecret: sealed})
	return nil
}

func (r oauth2Row) pk() int32 { return r.PK }

func (r oauth2Row) record(common Provider, keys *seal.Keys) (Record, error) {
	var err error
	r.ClientSecret, err = keys.Unseal(r.SealedClientSecret, clientSecrets().place(r.PK))
	return OAuth2Provider{Provider: common, OAuth2Settings: r.OAuth2Settings}, err
}

// workspaceDirectoryRow is the row of a workspace directory-sync provider, with its secret sealed.
type workspaceDirectoryRow struct {
	PK                         int32 `gorm:"primaryKey;autoIncrement:false"`
	WorkspaceDirectorySettings `gorm:"embedded"`
	SealedCredentials          []byte `gorm:"column:credentials"`
}

// TableName returns the table for GORM.
func (workspaceDirectoryRow) TableName() string { return directoryTable }

func (*WorkspaceDirectorySettings) kind() Kind { return KindWorkspaceDirectory }

func (*WorkspaceDirectorySettings) uniqueValue() string { return "" }

func (s *WorkspaceDirectorySettings) secret() (sealedColumn, Secret) {
	return credentials(), s.Credentials
}

func (s *WorkspaceDirectorySettings) addRow(rows *kindRows, keys *seal.Keys, pk int32) error {
	sealed, err := keys.Seal(s.Credentials, credentials().place(pk))
	if err != nil {
		return fmt.Errorf("seal secret: %w", err)
	}
	rows.directories = append(rows.directories,
		&workspaceDirectoryRow{PK: pk, WorkspaceDirectorySettings: *s, SealedCredentials: sealed})
	return nil
}

func (r workspaceDirectoryRow) pk() int32 { return r.PK }

func (r workspaceDirectoryRow) record(common Provider, keys *seal.Keys) (Record, error) {
	var err error
	r.Credentials, err = keys.Unseal(r.SealedCredentials, credentials().place(r.PK))
	return WorkspaceDirectoryProvider{Provider: common, WorkspaceDirectorySettings: r.WorkspaceDirectorySettings}, err
}

func sealedColumns() []sealedColumn { return []sealedColumn{clientSecrets(), credentials()} }
