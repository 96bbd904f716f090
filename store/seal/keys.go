package seal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"
	"github.com/tink-crypto/tink-go/v2/tink"
)

var (
	// ErrNoKeyset says that there is no keyset file, though the database has sealed secrets.
	ErrNoKeyset = errors.New("no keyset file")
	// ErrKeysetExists says that there is a file where a new keyset was to be made.
	ErrKeysetExists = errors.New("file already exists")
	// ErrKeysetUnusable says that the keyset file cannot be read, can be read by others, or is not that of the database.
	ErrKeysetUnusable = errors.New("keyset cannot be used")
	// ErrKeysetFull says that a keyset file would become so large that it could not be read back.
	ErrKeysetFull = errors.New("keyset is full")
	// ErrDamaged says that a sealed secret was moved, cut or altered, or that the key is gone that it was sealed with.
	ErrDamaged = errors.New("sealed secret is damaged, or its key is missing")
)

// Keys seal secrets and make fingerprints. Old keys stay among them, so that what they made can still be read.
type Keys struct {
	sealing      *keyset.Handle
	fingerprints *keyset.Handle
	aead         tink.AEAD
	mac          tink.MAC
	// ids name the sealing keys, the oldest first, and primary the one that seals. Tink takes time for each key to tell.
	ids     []uint32
	primary uint32
	// known has the ids, and retired the file that was kept for each key that was removed.
	known   map[uint32]bool
	retired map[uint32]string
}

// keysetFile is the content of a keyset file: two Tink keysets in JSON, in clear text.
type keysetFile struct {
	// Sealing has keys for AES-256-GCM.
	Sealing json.RawMessage `json:"sealing"`
	// Fingerprints has keys for HMAC-SHA-256.
	Fingerprints json.RawMessage `json:"fingerprints"`
	// Retired names, for each sealing key that was removed, the file beside this one that still has it.
	Retired map[uint32]string `json:"retired,omitempty"`
}

func newKeys() (*Keys, error) {
	sealing, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("create keys: %w", err)
	}
	fingerprints, err := keyset.NewHandle(mac.HMACSHA256Tag256KeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("create keys: %w", err)
	}
	return keysOf(sealing, fingerprints, nil)
}

func keysOf(sealing, fingerprints *keyset.Handle, retired map[uint32]string) (*Keys, error) {
	sealer, err := aead.New(sealing)
	if err != nil {
		return nil, fmt.Errorf("load the sealing keys: %w", err)
	}
	authenticator, err := mac.New(fingerprints)
	if err != nil {
		return nil, fmt.Errorf("load the fingerprint keys: %w", err)
	}
	info := sealing.KeysetInfo()
	keys := &Keys{
		sealing: sealing, fingerprints: fingerprints, aead: sealer, mac: authenticator,
		primary: info.GetPrimaryKeyId(), known: map[uint32]bool{}, retired: retired,
	}
	for _, key := range info.GetKeyInfo() {
		keys.ids = append(keys.ids, key.GetKeyId())
		keys.known[key.GetKeyId()] = true
	}
	return keys, nil
}

// parseKeys reads the content of a keyset file. What Tink says of it is left out, since it may repeat the content.
func parseKeys(content []byte) (*Keys, error) {
	var file keysetFile
	if json.Unmarshal(content, &file) != nil {
		return nil, errors.New("it is not a JSON object")
	}
	sealing, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(file.Sealing)))
	if err != nil {
		return nil, errors.New(`"sealing" is not a Tink keyset`)
	}
	fingerprints, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(file.Fingerprints)))
	if err != nil {
		return nil, errors.New(`"fingerprints" is not a Tink keyset`)
	}
	keys, err := keysOf(sealing, fingerprints, file.Retired)
	if err != nil {
		return nil, errors.New("its keys are not AEAD keys for sealing and MAC keys for fingerprints")
	}
	return keys, nil
}

// marshal returns the content of a keyset file.
func (k *Keys) marshal() ([]byte, error) {
	file := keysetFile{Retired: k.retired}
	for handle, target := range map[*keyset.Handle]*json.RawMessage{
		k.sealing: &file.Sealing, k.fingerprints: &file.Fingerprints,
	} {
		var text bytes.Buffer
		if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&text)); err != nil {
			return nil, fmt.Errorf("encode keys: %w", err)
		}
		*target = text.Bytes()
	}
	content, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode keys: %w", err)
	}
	return append(content, '\n'), nil
}

// PrimaryID names the key that seals.
func (k *Keys) PrimaryID() uint32 { return k.primary }

// Seal encrypts a secret for one place, so that the ciphertext is of no use in any other.
func (k *Keys) Seal(secret Secret, at Place) ([]byte, error) {
	sealed, err := k.aead.Encrypt([]byte(secret.Reveal()), at.associatedData())
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", at, err)
	}
	return sealed, nil
}

// Unseal returns the secret that was sealed for this place, or ErrDamaged, which names a key that is missing.
func (k *Keys) Unseal(sealed []byte, at Place) (Secret, error) {
	text, err := k.aead.Decrypt(sealed, at.associatedData())
	if id, lacks := k.MissingKey(sealed); err != nil && lacks {
		return Secret{}, fmt.Errorf("%s: %w: the keyset lacks %s", at, ErrDamaged, k.Describe(id))
	}
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", at, ErrDamaged)
	}
	return NewSecret(string(text)), nil
}

// Fingerprint authenticates the digest of a body, so that nobody without the keys can try bodies against it.
func (k *Keys) Fingerprint(digest []byte) ([]byte, error) {
	fingerprint, err := k.mac.ComputeMAC(digest)
	if err != nil {
		return nil, fmt.Errorf("compute a fingerprint: %w", err)
	}
	return fingerprint, nil
}

// Matches tells whether a fingerprint is that of a digest.
func (k *Keys) Matches(fingerprint, digest []byte) bool {
	return k.mac.VerifyMAC(fingerprint, digest) == nil
}

// prefixSize is that of what Tink begins each ciphertext with: a version and the id of its key.
const (
	prefixSize    = 5
	prefixVersion = 1
)

// Prefix is how the ciphertexts of a key begin.
func Prefix(id uint32) []byte { return binary.BigEndian.AppendUint32([]byte{prefixVersion}, id) }

// Place is where a sealed secret belongs: the column of a row.
type Place struct {
	Table  string
	Column string
	PK     int32
}

// String names the place for people.
func (p Place) String() string { return fmt.Sprintf("provider %d: %s", p.PK, p.Column) }

func (p Place) associatedData() []byte { return fmt.Appendf(nil, "%s.%s.%d", p.Table, p.Column, p.PK) }

// Proof is what only the keys that made it, and those that isSuccessorOf them, can read.
type Proof struct {
	Sealed      []byte
	Fingerprint []byte
}

func proofPlace() Place { return Place{Table: "keyset", Column: "sealed", PK: 1} }

// Prove makes a proof, by which a keyset is known to be that of a database.
func (k *Keys) Prove() (Proof, error) {
	sealed, err := k.Seal(Secret{}, proofPlace())
	if err != nil {
		return Proof{}, err
	}
	fingerprint, err := k.Fingerprint(nil)
	if err != nil {
		return Proof{}, err
	}
	return Proof{Sealed: sealed, Fingerprint: fingerprint}, nil
}

// KeyID names the key that a ciphertext was made with; false for what cannot be one.
func KeyID(sealed []byte) (id uint32, ok bool) {
	if len(sealed) < prefixSize || sealed[0] != prefixVersion {
		return 0, false
	}
	return binary.BigEndian.Uint32(sealed[1:prefixSize]), true
}

// MissingKey tells whether a ciphertext was made with a key that is not among these, and with which.
func (k *Keys) MissingKey(sealed []byte) (id uint32, lacks bool) {
	id, ok := KeyID(sealed)
	return id, ok && !k.known[id]
}

// Describe names a key, and the file that still has it if it was retired.
func (k *Keys) Describe(id uint32) string {
	if file, ok := k.retired[id]; ok {
		return fmt.Sprintf("key %d (retired to %s)", id, file)
	}
	return fmt.Sprintf("key %d", id)
}

// RetiredTo returns the name of the file, beside that of the keyset, that was kept when a key was retired; "" for a key
// that was not.
func (k *Keys) RetiredTo(id uint32) string { return k.retired[id] }

// Satisfies tells whether the keys can read what was made with those of the proof.
func (k *Keys) Satisfies(proof Proof) bool {
	_, err := k.Unseal(proof.Sealed, proofPlace())
	return err == nil && k.Authenticates(proof)
}

// Authenticates tells whether the proof was made with a keyset that had the same keys for fingerprints, which never
// change: with a newer or an older state of this one.
func (k *Keys) Authenticates(proof Proof) bool { return k.Matches(proof.Fingerprint, nil) }

// isSuccessorOf tells whether the keys can read what was made with earlier ones, except what only keys have sealed that were
// retired since, and what others may make with those that were only added.
func (k *Keys) isSuccessorOf(earlier *Keys) bool {
	for _, id := range earlier.ids {
		if !k.known[id] && k.retired[id] == "" {
			return false
		}
	}
	proof, err := earlier.Prove()
	if err != nil || !k.known[earlier.primary] {
		return err == nil && k.Authenticates(proof)
	}
	return k.Satisfies(proof)
}
