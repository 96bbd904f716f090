package seal

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// ErrAlreadyPrimary means that the newest key of a keyset already seals.
var ErrAlreadyPrimary = errors.New("the newest key is already in use")

// Step returns the next keys of a keyset. It keeps the fingerprint keys: a fingerprint cannot be computed again,
// because the body is not stored.
type Step func(before *Keys) (after *Keys, err error)

// RotateKey is a Step that adds a key and makes it the primary one.
func RotateKey(before *Keys) (*Keys, error) {
	added, err := AddKey(before)
	if err != nil {
		return nil, err
	}
	return PromoteNewest(added)
}

// AddKey is a Step that adds a key, which unseals but does not seal yet.
func AddKey(before *Keys) (*Keys, error) {
	return before.step(before.retired, func(manager *keyset.Manager) error {
		for {
			id, err := manager.Add(aead.AES256GCMKeyTemplate())
			if err != nil || before.retired[id] == "" {
				return err //nolint:wrapcheck // The caller does.
			}
			// Tink chooses random ids and does not know the retired ones.
			if err := manager.Delete(id); err != nil {
				return err //nolint:wrapcheck // The caller does.
			}
		}
	})
}

// PromoteNewest is a Step that makes the newest key the primary one. It returns ErrAlreadyPrimary if it is already.
func PromoteNewest(before *Keys) (*Keys, error) {
	newest := before.NewestID()
	if newest == before.PrimaryID() {
		return nil, fmt.Errorf("key %d: %w", newest, ErrAlreadyPrimary)
	}
	return before.step(before.retired, func(manager *keyset.Manager) error {
		return manager.SetPrimary(newest)
	})
}

// OlderIDs returns the keys added before the primary one, oldest first. They no longer seal.
func (k *Keys) OlderIDs() []uint32 { return k.ids[:slices.Index(k.ids, k.primary)] }

// withoutOlder removes the keys older than the primary one, and records the file that still has them.
func (k *Keys) withoutOlder(kept string) (*Keys, error) {
	retired := map[uint32]string{}
	maps.Copy(retired, k.retired)
	for _, id := range k.OlderIDs() {
		retired[id] = kept
	}
	return k.step(retired, func(manager *keyset.Manager) error {
		for _, id := range k.OlderIDs() {
			if err := manager.Delete(id); err != nil {
				return err //nolint:wrapcheck // The caller does.
			}
		}
		return nil
	})
}

func (k *Keys) step(retired map[uint32]string, change func(manager *keyset.Manager) error) (*Keys, error) {
	manager := keyset.NewManagerFromHandle(k.sealing)
	if err := change(manager); err != nil {
		return nil, fmt.Errorf("change the keyset: %w", err)
	}
	sealing, err := manager.Handle()
	if err != nil {
		return nil, fmt.Errorf("change the keyset: %w", err)
	}
	return keysOf(sealing, k.fingerprints, retired)
}

// IDs returns the sealing keys, oldest first.
func (k *Keys) IDs() []uint32 { return slices.Clone(k.ids) }

// NewestID returns the key that was added last.
func (k *Keys) NewestID() uint32 { return k.ids[len(k.ids)-1] }
