package seal

import (
	"fmt"
	"slices"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// keyring is a Tink keyset of AES-256-GCM keys.
type keyring struct {
	handle *keyset.Handle
	aead   tink.AEAD
}

func newKeyring() (keyring, error) { return keyringOf(keyset.NewHandle(aead.AES256GCMKeyTemplate())) }

// keyringOf takes the results of a function that returns a keyset.
func keyringOf(handle *keyset.Handle, err error) (keyring, error) {
	var primitive tink.AEAD
	if err == nil {
		primitive, err = aead.New(handle)
	}
	if err != nil {
		return keyring{}, fmt.Errorf("load keys: %w", err)
	}
	return keyring{handle, primitive}, nil
}

// IDs returns the keys, oldest first. Tink takes time to list them.
func (r keyring) IDs() (ids []uint32) {
	for _, key := range r.handle.KeysetInfo().GetKeyInfo() {
		ids = append(ids, key.GetKeyId())
	}
	return ids
}

// PrimaryID returns the key that encrypts.
func (r keyring) PrimaryID() uint32 { return r.handle.KeysetInfo().GetPrimaryKeyId() }

// with returns these keys and a new one, which is primary.
func (r keyring) with() (keyring, error) {
	return r.change(func(manager *keyset.Manager) error {
		id, err := manager.Add(aead.AES256GCMKeyTemplate())
		if err != nil {
			return err //nolint:wrapcheck // The caller does.
		}
		return manager.SetPrimary(id)
	})
}

// without returns the primary key and the kept ones.
func (r keyring) without(kept []uint32) (keyring, error) {
	kept = append(slices.Clone(kept), r.PrimaryID())
	return r.change(func(manager *keyset.Manager) error {
		for _, id := range r.IDs() {
			if slices.Contains(kept, id) {
				continue
			}
			if err := manager.Delete(id); err != nil {
				return err //nolint:wrapcheck // The caller does.
			}
		}
		return nil
	})
}

func (r keyring) change(change func(*keyset.Manager) error) (keyring, error) {
	manager := keyset.NewManagerFromHandle(r.handle)
	if err := change(manager); err != nil {
		return keyring{}, fmt.Errorf("change keys: %w", err)
	}
	return keyringOf(manager.Handle())
}
