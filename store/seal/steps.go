package seal

import (
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// ErrPromoted says that the newest key of a keyset is already in use.
var ErrPromoted = errors.New("the newest key is already in use")

// Step makes the next keys of a keyset. The keys for fingerprints stay: a fingerprint cannot be made again, because the
// body that it stands for is gone.
type Step func(before *Keys) (after *Keys, err error)

// Rotated is the Step that adds a key, with which secrets are sealed from now on.
func Rotated(before *Keys) (*Keys, error) {
	added, err := Added(before)
	if err != nil {
		return nil, err
	}
	return Promoted(added)
}

// Added is the Step that adds a key, which opens secrets and does not seal yet.
func Added(before *Keys) (*Keys, error) {
	return before.step(func(manager *keyset.Manager) error {
		_, err := manager.Add(aead.AES256GCMKeyTemplate())
		return err //nolint:wrapcheck // The caller does.
	})
}

// Promoted is the Step that lets the newest key seal. It returns ErrPromoted where it does so already.
func Promoted(before *Keys) (*Keys, error) {
	newest := before.NewestID()
	if newest == before.PrimaryID() {
		return nil, fmt.Errorf("key %d: %w", newest, ErrPromoted)
	}
	return before.step(func(manager *keyset.Manager) error {
		return manager.SetPrimary(newest)
	})
}

func (k *Keys) step(change func(manager *keyset.Manager) error) (*Keys, error) {
	manager := keyset.NewManagerFromHandle(k.sealing)
	if err := change(manager); err != nil {
		return nil, fmt.Errorf("change the keyset: %w", err)
	}
	sealing, err := manager.Handle()
	if err != nil {
		return nil, fmt.Errorf("change the keyset: %w", err)
	}
	return keysOf(sealing, k.fingerprints)
}

// IDs name the keys that open secrets, the oldest first.
func (k *Keys) IDs() []uint32 {
	var ids []uint32
	for _, key := range k.sealing.KeysetInfo().GetKeyInfo() {
		ids = append(ids, key.GetKeyId())
	}
	return ids
}

// NewestID names the key that was added last.
func (k *Keys) NewestID() uint32 {
	ids := k.IDs()
	return ids[len(ids)-1]
}
