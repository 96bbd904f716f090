package store

import (
	"context"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/transfer"
)

// Copy copies everything from one database into an empty one, or continues an interrupted copy. The last event of the
// copy is that it was copied. Secrets stay sealed: the copy gets the data keys of the source, which the primary master
// key in the file at keysetPath encrypts for it.
//
// It returns ErrNoKeyset, ErrKeysetUnusable and the errors of transfer.Copy.
func Copy(
	ctx context.Context, from, to database.Movable, keysetPath string, progress transfer.Progress,
) ([]transfer.Content, error) {
	wrap := func(source transfer.Keyset) (transfer.Keyset, error) {
		row := keysetRow{DatabaseID: source.DatabaseID, Wrapped: seal.Wrapped{
			SecretKeys: source.SecretKeys, DigestKey: source.DigestKey,
		}}
		keys, master, err := row.open(keysetPath)
		if err != nil {
			return transfer.Keyset{}, err
		}
		row, err = newKeysetRow(keys, master)
		return transfer.Keyset{
			Version: row.Version, DatabaseID: row.DatabaseID, SecretKeys: row.SecretKeys, DigestKey: row.DigestKey,
		}, err
	}
	ended := func(tx *gorm.DB) error { return addEvents(tx, Event{Event: EventDatabaseCopied}) }
	return transfer.Copy(ctx, from, to, wrap, ended, progress)
}
