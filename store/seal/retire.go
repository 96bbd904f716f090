package seal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"example.com/providerd/store/durable"
)

// Retirement is what was removed from a keyset file.
type Retirement struct {
	// IDs name the keys, the oldest first; none where there was nothing to remove.
	IDs []uint32
	// Kept is the path of the file as it was, which still has them.
	Kept string
}

// Retire removes the sealing keys that are older than the one that seals, once note has made sure that nothing needs
// them. The file as it was gets a second name, with the time, before the new one takes its place. The keys for
// fingerprints stay.
//
// It returns ErrNoKeyset, ErrKeysetUnusable, an error of the file system, or that of note or ctx.
func (r *Keyring) Retire(ctx context.Context, note func(before *Keys) error) (retired Retirement, err error) {
	err = durable.WithLock(ctx, filepath.Dir(r.path), func() error {
		before, err := r.current(ctx)
		if err != nil || len(before.keys.OlderIDs()) == 0 {
			return err
		}
		if err := note(before.keys); err != nil {
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

// keep gives the file that was read a second name. It stays where the rest fails: the file may have lost its first name
// all the same.
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
