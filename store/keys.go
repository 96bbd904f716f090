package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// keys seal secrets and make fingerprints. Old keys stay among them, so that what they made can still be read.
type keys struct {
	sealing      *keyset.Handle
	fingerprints *keyset.Handle
	aead         tink.AEAD
	mac          tink.MAC
}

// keysetFile is the content of a keyset file: two Tink keysets in JSON, in clear text.
type keysetFile struct {
	// Sealing has keys for AES-256-GCM.
	Sealing json.RawMessage `json:"sealing"`
	// Fingerprints has keys for HMAC-SHA-256.
	Fingerprints json.RawMessage `json:"fingerprints"`
}

func newKeys() (*keys, error) {
	sealing, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("make keys: %w", err)
	}
	fingerprints, err := keyset.NewHandle(mac.HMACSHA256Tag256KeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("make keys: %w", err)
	}
	return keysOf(sealing, fingerprints)
}

func keysOf(sealing, fingerprints *keyset.Handle) (*keys, error) {
	sealer, err := aead.New(sealing)
	if err != nil {
		return nil, fmt.Errorf("use keys for sealing: %w", err)
	}
	authenticator, err := mac.New(fingerprints)
	if err != nil {
		return nil, fmt.Errorf("use keys for fingerprints: %w", err)
	}
	return &keys{sealing: sealing, fingerprints: fingerprints, aead: sealer, mac: authenticator}, nil
}

// parseKeys reads the content of a keyset file. What Tink says of it is left out, since it may repeat the content.
func parseKeys(content []byte) (*keys, error) {
	var file keysetFile
	if json.Unmarshal(content, &file) != nil {
		return nil, errors.New("it is not JSON")
	}
	sealing, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(file.Sealing)))
	if err != nil {
		return nil, errors.New(`"sealing" is not a Tink keyset`)
	}
	fingerprints, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(file.Fingerprints)))
	if err != nil {
		return nil, errors.New(`"fingerprints" is not a Tink keyset`)
	}
	return keysOf(sealing, fingerprints)
}

// marshal returns the content of a keyset file.
func (k *keys) marshal() ([]byte, error) {
	var file keysetFile
	for handle, target := range map[*keyset.Handle]*json.RawMessage{
		k.sealing: &file.Sealing, k.fingerprints: &file.Fingerprints,
	} {
		var text bytes.Buffer
		if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&text)); err != nil {
			return nil, fmt.Errorf("write keys: %w", err)
		}
		*target = text.Bytes()
	}
	content, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write keys: %w", err)
	}
	return append(content, '\n'), nil
}

// rotated returns the keys with a new one, with which secrets are sealed from now on. The keys for fingerprints stay: a
// fingerprint cannot be made anew, because the body that it stands for is gone.
func (k *keys) rotated() (*keys, error) {
	manager := keyset.NewManagerFromHandle(k.sealing)
	id, err := manager.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("add a key: %w", err)
	}
	if err := manager.SetPrimary(id); err != nil {
		return nil, fmt.Errorf("add a key: %w", err)
	}
	sealing, err := manager.Handle()
	if err != nil {
		return nil, fmt.Errorf("add a key: %w", err)
	}
	return keysOf(sealing, k.fingerprints)
}

// primaryID names the key that seals.
func (k *keys) primaryID() (uint32, error) {
	primary, err := k.sealing.Primary()
	if err != nil {
		return 0, fmt.Errorf("find the primary key: %w", err)
	}
	return primary.KeyID(), nil
}

// seal encrypts a secret for one place, so that the ciphertext is of no use in any other.
func (k *keys) seal(secret Secret, at place) ([]byte, error) {
	sealed, err := k.aead.Encrypt([]byte(secret.Reveal()), at.associatedData())
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", at, err)
	}
	return sealed, nil
}

// unseal returns the secret that was sealed for this place, or ErrDamaged.
func (k *keys) unseal(sealed []byte, at place) (Secret, error) {
	text, err := k.aead.Decrypt(sealed, at.associatedData())
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", at, ErrDamaged)
	}
	return NewSecret(string(text)), nil
}

// fingerprint authenticates the digest of a body, so that nobody without the keys can try bodies against it.
func (k *keys) fingerprint(digest []byte) ([]byte, error) {
	fingerprint, err := k.mac.ComputeMAC(digest)
	if err != nil {
		return nil, fmt.Errorf("make a fingerprint: %w", err)
	}
	return fingerprint, nil
}

// matches tells whether a fingerprint is that of a digest.
func (k *keys) matches(fingerprint, digest []byte) bool {
	return k.mac.VerifyMAC(fingerprint, digest) == nil
}

// place is where a sealed secret belongs.
type place struct {
	table  string
	column string
	pk     int32
}

// String names the place for people.
func (p place) String() string { return fmt.Sprintf("provider %d: %s", p.pk, p.column) }

func (p place) associatedData() []byte { return fmt.Appendf(nil, "%s.%s.%d", p.table, p.column, p.pk) }
