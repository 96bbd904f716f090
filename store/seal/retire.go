package seal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"example.com/providerd/store/durable"
)

// Retirement describes the keys removed from a keyset file.
type Retirement struct {
	// IDs are the removed keys, oldest first; none if there was nothing to remove.
	IDs []uint32
	// Kept is the path of the previous file, which still has them.
	Kept string
}

// Retire removes the sealing keys older than the primary one, after record has checked that nothing needs them. The
// previous file is kept under another name, which contains the time. Fingerprint keys stay.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, a file system error, or that of record or ctx.
func (r *Keyring) Retire(ctx context.Context, record func(before *Keys) error) (retired Retirement, err error) {
	err = durable.WithLock(ctx, filepath.Dir(r.path), func() error {
		before, err := r.current(ctx)
		if err != nil || len(before.keys.OlderIDs()) == 0 {
			return err
		}
		if err := record(before.keys); err != nil {
			return err
		}
		kept, err := r.keep(before)
		if err != nil {
			return err
		}
		after, err := before.keys.withoutOlder(filepath.Base(kept))
		if err != nil {
			return err
		}
		retired = Retirement{IDs: before.keys.OlderIDs(), Kept: kept}
		return after.write(r.path, durable.OwnerOf(before.file))
	})
	return retired, err
}

// keep gives the file that was read a second name. The name stays if a later step fails, because the first name may be
// lost all the same.
func (r *Keyring) keep(before *contents) (kept string, err error) {
	if kept, err = durable.Keep(r.path, "retired"); err != nil {
		return "", err
	}
	file, err := os.Stat(kept)
	if err != nil {
		return "", fmt.Errorf("keep %s: %w", r.path, err)
	}
	if !isUnchanged(file, before.file) {
		return "", fmt.Errorf("%w: another program replaced %s meanwhile; run the command again", ErrKeysetUnusable, r.path)
	}
	return kept, nil
}
