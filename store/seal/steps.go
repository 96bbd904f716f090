package seal

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// ErrAlreadyPrimary says that the newest key of a keyset is already in use.
var ErrAlreadyPrimary = errors.New("the newest key is already in use")

// Step makes the next keys of a keyset. The keys for fingerprints stay: a fingerprint cannot be made again, because the
// body that it stands for is gone.
type Step func(before *Keys) (after *Keys, err error)

// RotateKey is the Step that adds a key, with which secrets are sealed from now on.
func RotateKey(before *Keys) (*Keys, error) {
	added, err := AddKey(before)
	if err != nil {
		return nil, err
	}
	return PromoteNewest(added)
}

// AddKey is the Step that adds a key, which opens secrets and does not seal yet.
func AddKey(before *Keys) (*Keys, error) {
	return before.step(before.retired, func(manager *keyset.Manager) error {
		for {
			id, err := manager.Add(aead.AES256GCMKeyTemplate())
			if err != nil || before.retired[id] == "" {
				return err //nolint:wrapcheck // The caller does.
			}
			// Tink draws ids at random, and knows nothing of those that were retired.
			if err := manager.Delete(id); err != nil {
				return err //nolint:wrapcheck // The caller does.
			}
		}
	})
}

// PromoteNewest is the Step that lets the newest key seal. It returns ErrAlreadyPrimary where it does so already.
func PromoteNewest(before *Keys) (*Keys, error) {
	newest := before.NewestID()
	if newest == before.PrimaryID() {
		return nil, fmt.Errorf("key %d: %w", newest, ErrAlreadyPrimary)
	}
	return before.step(before.retired, func(manager *keyset.Manager) error {
		return manager.SetPrimary(newest)
	})
}

// OlderIDs names the keys that were added before the one that seals now, the oldest first. Nothing is sealed with them any
// more.
func (k *Keys) OlderIDs() []uint32 { return k.ids[:slices.Index(k.ids, k.primary)] }

// withoutOlder removes the keys that are older than the one that seals, and notes the file that still has them.
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

// IDs name the keys that open secrets, the oldest first.
func (k *Keys) IDs() []uint32 { return slices.Clone(k.ids) }

// NewestID names the key that was added last.
func (k *Keys) NewestID() uint32 { return k.ids[len(k.ids)-1] }
