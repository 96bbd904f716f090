package store

import (
	"context"

	"example.com/providerd/store/database"
	"example.com/providerd/store/transfer"
)

// Copy makes an empty database have all that another one has, or goes on with a copy that was interrupted. The secrets
// stay sealed as they are: the keyset in the file at keysetPath, which is that of the source, opens both.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, the errors of transfer.Copy, and database.ErrOlder or ErrCopyIncomplete for a
// source without a keyset of its own.
func Copy(
	ctx context.Context, from, to database.Movable, keysetPath string, progress transfer.Progress,
) ([]transfer.Content, error) {
	if _, err := openKeyring(ctx, from, keysetPath); err != nil {
		return nil, err
	}
	return transfer.Copy(ctx, from, to, progress)
}
