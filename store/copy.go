package store

import (
	"context"

	"example.com/providerd/store/database"
	"example.com/providerd/store/transfer"
)

// Copy copies everything from one database into an empty one, or continues an interrupted copy. Secrets stay sealed:
// the keyset in the file at keysetPath, which is that of the source, opens both databases.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, the errors of transfer.Copy, and database.ErrOlder or
// database.ErrCopyIncomplete if the source has no keyset.
func Copy(
	ctx context.Context, from, to database.Movable, keysetPath string, progress transfer.Progress,
) ([]transfer.Content, error) {
	if _, err := openKeyring(ctx, from, keysetPath); err != nil {
		return nil, err
	}
	return transfer.Copy(ctx, from, to, progress)
}
