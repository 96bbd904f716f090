package seal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tink-crypto/tink-go/v2/keyset"
)

// Wrapped is the data keys of a database as Tink keysets that a master key has encrypted. Their associated data is the
// id of the database.
type Wrapped struct {
	// SecretKeys seal secrets.
	SecretKeys []byte
	// DigestKey computes MACs. It stays for the life of the database.
	DigestKey []byte
}

// Wrap encrypts the keys with one of the master keys.
func (k *Keys) Wrap(master *MasterKeys, masterID uint32, databaseID []byte) (Wrapped, error) {
	wrapping, err := master.change(func(manager *keyset.Manager) error { return manager.SetPrimary(masterID) })
	if err != nil {
		return Wrapped{}, err
	}
	var secrets, digest bytes.Buffer
	err = errors.Join(
		k.handle.WriteWithAssociatedData(keyset.NewBinaryWriter(&secrets), wrapping.aead, databaseID),
		k.digest.WriteWithAssociatedData(keyset.NewBinaryWriter(&digest), wrapping.aead, databaseID),
	)
	if err != nil {
		return Wrapped{}, fmt.Errorf("encrypt the data keys: %w", err)
	}
	return Wrapped{SecretKeys: secrets.Bytes(), DigestKey: digest.Bytes()}, nil
}

// MasterID returns the id of the master key that encrypts the keys. It returns false if they are damaged.
func (w Wrapped) MasterID() (id uint32, ok bool) {
	encrypted, err := keyset.NewBinaryReader(bytes.NewReader(w.SecretKeys)).ReadEncrypted()
	if err != nil {
		return 0, false
	}
	return KeyID(encrypted.GetEncryptedKeyset())
}

// Open decrypts the keys. It returns ErrKeysetUnusable, which names the master key if it is missing.
func (w Wrapped) Open(master *MasterKeys, databaseID []byte) (*Keys, error) {
	id, ok := w.MasterID()
	if ok && !slices.Contains(master.IDs(), id) {
		return nil, fmt.Errorf("%w: it lacks master key %d, which encrypts the data keys of the database; "+
			"restore a keyset with this key, or pass it with --keyset", ErrKeysetUnusable, id)
	}
	read := func(wrapped []byte) (*keyset.Handle, error) {
		return keyset.ReadWithAssociatedData(keyset.NewBinaryReader(bytes.NewReader(wrapped)), master.aead, databaseID)
	}
	secrets, err := keyringOf(read(w.SecretKeys))
	digest, digestErr := read(w.DigestKey)
	keys, err := keysOf(secrets, digest, errors.Join(err, digestErr))
	if err != nil {
		return nil, fmt.Errorf("%w: the data keys in the database are damaged, or belong to another database; "+
			"restore a backup", ErrKeysetUnusable)
	}
	return keys, nil
}
