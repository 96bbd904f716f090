package records

import (
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/rows"
	"example.com/providerd/store/seal"
)

// Read returns the records that a query selects, with their applications.
func Read(query *gorm.DB) ([]rows.Row[Record], error) {
	read, err := rows.Read(WithDefaults(query.Model(&Provider{})), scanRecord)
	if err != nil {
		return nil, fmt.Errorf("read providers: %w", err)
	}
	commons := make([]Provider, len(read))
	for i, record := range read {
		commons[i] = record.Value.Common()
	}
	if err := AddApplications(query.Session(&gorm.Session{NewDB: true}), commons); err != nil {
		return nil, err
	}
	for i, common := range commons {
		read[i].Value = read[i].Value.with(common, seal.Secret{})
	}
	return read, nil
}

// KeyOf returns the pk of a record, which may be damaged.
func KeyOf(row rows.Row[Record]) int64 { return row.Value.Common().PK }

// row is a row of either kind. The column that both kinds have is scanned into OAuth2Settings.
type row struct {
	Provider                   `gorm:"embedded"`
	OAuth2Settings             `gorm:"embedded"`
	WorkspaceDirectorySettings `gorm:"embedded"`
}

// scanRecord scans a record of either kind. The error of a damaged one names it.
func scanRecord(into func(model any) error) (record Record, err error) {
	var row row
	err = into(&row)
	if row.Kind == KindWorkspaceDirectory {
		row.WorkspaceDirectorySettings.PropertyMappings = row.OAuth2Settings.PropertyMappings
		record = WorkspaceDirectoryProvider{row.Provider, row.WorkspaceDirectorySettings}
	} else {
		record = OAuth2Provider{row.Provider, row.OAuth2Settings}
	}
	if invalid := CheckTexts(Settings(record, row.Columns())); err == nil && invalid != nil {
		err = &rows.DamagedError{Cause: invalid}
	}
	if err != nil {
		return record, fmt.Errorf("provider %d: %w", row.PK, err)
	}
	return record, nil
}

const selectLinks = `SELECT applications.*, provider_pk AS served_by, 1 = 0 AS is_backchannel FROM applications
	WHERE provider_pk IN ?
	UNION ALL SELECT applications.*, backchannels.provider_pk, 1 = 1 FROM backchannels
	JOIN applications ON applications.id = application_id WHERE backchannels.provider_pk IN ?`

// AddApplications adds the applications that providers serve.
func AddApplications(tx *gorm.DB, providers []Provider) error {
	if len(providers) == 0 {
		return nil
	}
	pks := make([]int64, len(providers))
	for i, provider := range providers {
		pks[i] = provider.PK
	}
	var links []struct {
		Application   `gorm:"embedded"`
		ServedBy      int64
		IsBackchannel bool
	}
	if err := tx.Raw(selectLinks, pks, pks).Scan(&links).Error; err != nil {
		return fmt.Errorf("read applications: %w", err)
	}
	at := map[int64]*Provider{}
	for i := range providers {
		at[providers[i].PK] = &providers[i]
	}
	for _, link := range links {
		if link.IsBackchannel {
			at[link.ServedBy].Backchannel = Backchannel{link.ServedBy, link.ID, link.Application}
		} else {
			at[link.ServedBy].Application = link.Application
		}
	}
	return nil
}

// Seal encrypts the secret of a record for the place that common identifies.
func Seal(keys *seal.Keys, record Record, common Provider) ([]byte, error) {
	_, secret := record.secret()
	return keys.Seal(secret, PlaceOf(common))
}

// Unseal returns a record with its secret, or ErrDamaged.
func Unseal(keys *seal.Keys, record Record) (Record, error) {
	common := record.Common()
	secret, err := keys.Unseal(common.Sealed, PlaceOf(common))
	if err != nil {
		return nil, err
	}
	return record.with(common, secret), nil
}

// PlaceOf returns where the secret of a record is sealed for.
func PlaceOf(common Provider) seal.Place {
	return seal.Place{Row: common.UID, Value: "providers.secret", Kind: string(common.Kind), PK: common.PK}
}
