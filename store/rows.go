package store

// The tables and columns that hold sealed secrets.
const (
	oauth2Table        = "oauth2_providers"
	clientSecretColumn = "client_secret"
	directoryTable     = "workspace_directory_providers"
	credentialsColumn  = "credentials"
)

// oauth2Row is the row of an OAuth2 provider, its secret sealed.
type oauth2Row struct {
	PK                 int32 `gorm:"primaryKey;autoIncrement:false"`
	OAuth2Settings     `gorm:"embedded"`
	SealedClientSecret []byte `gorm:"column:client_secret"`
}

// TableName names the table for GORM.
func (oauth2Row) TableName() string { return oauth2Table }

func clientSecretOf(pk int32) place {
	return place{table: oauth2Table, column: clientSecretColumn, pk: pk}
}

func sealOAuth2(keys *keys, pk int32, settings OAuth2Settings) (*oauth2Row, error) {
	sealed, err := keys.seal(settings.ClientSecret, clientSecretOf(pk))
	if err != nil {
		return nil, err
	}
	return &oauth2Row{PK: pk, OAuth2Settings: settings, SealedClientSecret: sealed}, nil
}

// unseal returns the settings with their secret. It returns ErrDamaged.
func (r oauth2Row) unseal(keys *keys) (OAuth2Settings, error) {
	var err error
	r.ClientSecret, err = keys.unseal(r.SealedClientSecret, clientSecretOf(r.PK))
	return r.OAuth2Settings, err
}

// workspaceDirectoryRow is the row of a workspace directory-sync provider, its secret sealed.
type workspaceDirectoryRow struct {
	PK                         int32 `gorm:"primaryKey;autoIncrement:false"`
	WorkspaceDirectorySettings `gorm:"embedded"`
	SealedCredentials          []byte `gorm:"column:credentials"`
}

// TableName names the table for GORM.
func (workspaceDirectoryRow) TableName() string { return directoryTable }

func credentialsOf(pk int32) place {
	return place{table: directoryTable, column: credentialsColumn, pk: pk}
}

func sealWorkspaceDirectory(
	keys *keys, pk int32, settings WorkspaceDirectorySettings,
) (*workspaceDirectoryRow, error) {
	sealed, err := keys.seal(settings.Credentials, credentialsOf(pk))
	if err != nil {
		return nil, err
	}
	return &workspaceDirectoryRow{PK: pk, WorkspaceDirectorySettings: settings, SealedCredentials: sealed}, nil
}

// unseal returns the settings with their secret. It returns ErrDamaged.
func (r workspaceDirectoryRow) unseal(keys *keys) (WorkspaceDirectorySettings, error) {
	var err error
	r.Credentials, err = keys.unseal(r.SealedCredentials, credentialsOf(r.PK))
	return r.WorkspaceDirectorySettings, err
}
