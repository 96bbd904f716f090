package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"
	"github.com/tink-crypto/tink-go/v2/tink"
)

var (
	// ErrNoKeyset means that there is no keyset file.
	ErrNoKeyset = errors.New("no keyset file")
	// ErrKeysetUnusable means that the keyset file is unreadable, open to others or lacks the database's master key.
	ErrKeysetUnusable = errors.New("keyset cannot be used")
	// ErrDamaged means that a sealed secret was moved, truncated or altered, or that its key is gone.
	ErrDamaged = errors.New("sealed secret is damaged, or its key is missing")
)

// Keys are the data keys of a database. The primary one seals secrets; older ones open what they have sealed.
type Keys struct {
	keyring
	digest *keyset.Handle
	mac    tink.MAC
}

// NewKeys returns the keys of a new database: one that seals (AES-256-GCM) and one for MACs (HMAC-SHA-256).
func NewKeys() (*Keys, error) {
	secrets, err := newKeyring()
	digest, digestErr := keyset.NewHandle(mac.HMACSHA256Tag256KeyTemplate())
	return keysOf(secrets, digest, errors.Join(err, digestErr))
}

func keysOf(secrets keyring, digest *keyset.Handle, err error) (*Keys, error) {
	var authenticator tink.MAC
	if err == nil {
		authenticator, err = mac.New(digest)
	}
	if err != nil {
		return nil, fmt.Errorf("load keys: %w", err)
	}
	return &Keys{keyring: secrets, digest: digest, mac: authenticator}, nil
}

// Rotated returns these keys and a new one, which seals.
func (k *Keys) Rotated() (*Keys, error) { return k.sealing(k.with()) }

// Without returns the keys that seal or are kept.
func (k *Keys) Without(kept []uint32) (*Keys, error) { return k.sealing(k.without(kept)) }

func (k *Keys) sealing(secrets keyring, err error) (*Keys, error) {
	return &Keys{keyring: secrets, digest: k.digest, mac: k.mac}, err
}

// Seal encrypts a secret for one place. The ciphertext cannot be decrypted for any other.
func (k *Keys) Seal(secret Secret, at Place) ([]byte, error) {
	sealed, err := k.aead.Encrypt([]byte(secret.Reveal()), at.associatedData())
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", at, err)
	}
	return sealed, nil
}

// Unseal decrypts a secret that was sealed for this place. It returns ErrDamaged, and names the key if it is missing.
func (k *Keys) Unseal(sealed []byte, at Place) (Secret, error) {
	text, err := k.aead.Decrypt(sealed, at.associatedData())
	if err == nil {
		return NewSecret(string(text)), nil
	}
	if id, ok := KeyID(sealed); ok && !slices.Contains(k.IDs(), id) {
		return Secret{}, fmt.Errorf("%s: %w (the database lacks data key %d)", at, ErrDamaged, id)
	}
	return Secret{}, fmt.Errorf("%s: %w", at, ErrDamaged)
}

// Digest returns a MAC of a secret, whichever key seals it. Without the keys, no one can test guesses against it.
func (k *Keys) Digest(secret Secret) ([]byte, error) {
	digest, err := k.mac.ComputeMAC([]byte(secret.Reveal()))
	if err != nil {
		return nil, fmt.Errorf("compute a digest: %w", err)
	}
	return digest, nil
}

// DigestKeyID identifies the key of digests, which never changes.
func (k *Keys) DigestKeyID() uint32 { return k.digest.KeysetInfo().GetPrimaryKeyId() }

// prefixSize is the length of the prefix of Tink ciphertexts: a version and the key id.
const (
	prefixSize    = 5
	prefixVersion = 1
)

// Prefix returns the prefix of ciphertexts made with a key.
func Prefix(id uint32) []byte { return binary.BigEndian.AppendUint32([]byte{prefixVersion}, id) }

// Place identifies the row that a sealed secret is stored in, and which of its values it is.
type Place struct {
	Row uuid.UUID
	// Value is the table and the column, and Kind what else the secret must not be mistaken for.
	Value, Kind string
	// PK identifies the row for people.
	PK int64
}

// String returns the place for people.
func (p Place) String() string { return fmt.Sprintf("provider %d: secret", p.PK) }

func (p Place) associatedData() []byte { return []byte(p.Value + "." + p.Kind + "/" + p.Row.String()) }

// KeyID returns the id of the key that made a ciphertext. It returns false if sealed cannot be a ciphertext.
func KeyID(sealed []byte) (id uint32, ok bool) {
	if len(sealed) < prefixSize || sealed[0] != prefixVersion {
		return 0, false
	}
	return binary.BigEndian.Uint32(sealed[1:prefixSize]), true
}

// Wrapped is the data keys of a database as encrypted Tink keysets, with the database's id as associated data.
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
			"copy the keyset file of another replica or of a backup, or pass it with --keyset", ErrKeysetUnusable, id)
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
