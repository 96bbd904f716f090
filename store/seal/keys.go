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
	// ErrNoKeyset means that there is no keyset file.
	ErrNoKeyset = errors.New("no keyset file")
	// ErrKeysetExists means that there is a file where a new keyset was to be created.
	ErrKeysetExists = errors.New("file already exists")
	// ErrKeysetUnusable means that the keyset file cannot be read, can be read by others, or belongs to another database.
	ErrKeysetUnusable = errors.New("keyset cannot be used")
	// ErrKeysetFull means that the keyset file would become too large to be read back.
	ErrKeysetFull = errors.New("keyset is full")
	// ErrDamaged means that a sealed secret was moved, truncated or altered, or that its key is gone.
	ErrDamaged = errors.New("sealed secret is damaged, or its key is missing")
)

// Keys seal secrets and compute fingerprints. They include old keys, so that what these sealed can still be read.
type Keys struct {
	sealing      *keyset.Handle
	fingerprints *keyset.Handle
	aead         tink.AEAD
	mac          tink.MAC
	// ids are the sealing keys, oldest first, and primary is the one that seals. They are kept here because Tink takes
	// time to list its keys.
	ids     []uint32
	primary uint32
	// known is the set of ids. retired is the name of the file that still has each removed key.
	known   map[uint32]bool
	retired map[uint32]string
}

// keysetFile is the content of a keyset file: two cleartext Tink keysets in JSON.
type keysetFile struct {
	// Sealing has AES-256-GCM keys.
	Sealing json.RawMessage `json:"sealing"`
	// Fingerprints has HMAC-SHA-256 keys.
	Fingerprints json.RawMessage `json:"fingerprints"`
	// Retired maps each removed sealing key to the file in the same directory that still has it.
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

// parseKeys parses the content of a keyset file. It omits the errors of Tink, which may quote the content.
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

// PrimaryID returns the id of the key that seals.
func (k *Keys) PrimaryID() uint32 { return k.primary }

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
	if id, missing := k.MissingKey(sealed); err != nil && missing {
		return Secret{}, fmt.Errorf("%s: %w: the keyset lacks %s", at, ErrDamaged, k.Describe(id))
	}
	if err != nil {
		return Secret{}, fmt.Errorf("%s: %w", at, ErrDamaged)
	}
	return NewSecret(string(text)), nil
}

// AuthenticateSecret returns a MAC of a secret of a column, which is the same whatever key the secret is sealed with.
func (k *Keys) AuthenticateSecret(secret Secret, column string) ([]byte, error) {
	return k.Fingerprint([]byte(column + "\x00" + secret.Reveal()))
}

// Fingerprint returns a MAC of the digest of a body. Without the keys, nobody can test guesses of the body against it.
func (k *Keys) Fingerprint(digest []byte) ([]byte, error) {
	fingerprint, err := k.mac.ComputeMAC(digest)
	if err != nil {
		return nil, fmt.Errorf("compute a fingerprint: %w", err)
	}
	return fingerprint, nil
}

// Matches reports whether a fingerprint is that of a digest.
func (k *Keys) Matches(fingerprint, digest []byte) bool {
	return k.mac.VerifyMAC(fingerprint, digest) == nil
}

// prefixSize is the length of the prefix of Tink ciphertexts: a version and the key id.
const (
	prefixSize    = 5
	prefixVersion = 1
)

// Prefix returns the prefix of ciphertexts made with a key.
func Prefix(id uint32) []byte { return binary.BigEndian.AppendUint32([]byte{prefixVersion}, id) }

// Place identifies where a sealed secret is stored: a column of a row.
type Place struct {
	Table  string
	Column string
	PK     int32
}

// String returns the place for people.
func (p Place) String() string { return fmt.Sprintf("provider %d: %s", p.PK, p.Column) }

func (p Place) associatedData() []byte { return fmt.Appendf(nil, "%s.%s.%d", p.Table, p.Column, p.PK) }

// Proof ties a database to its keyset: only the keys that made it, and their successors, can verify it.
type Proof struct {
	Sealed      []byte
	Fingerprint []byte
}

func proofPlace() Place { return Place{Table: "keyset", Column: "sealed", PK: 1} }

// Prove returns a new proof.
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

// KeyID returns the id of the key that made a ciphertext. It returns false if sealed cannot be a ciphertext.
func KeyID(sealed []byte) (id uint32, ok bool) {
	if len(sealed) < prefixSize || sealed[0] != prefixVersion {
		return 0, false
	}
	return binary.BigEndian.Uint32(sealed[1:prefixSize]), true
}

// MissingKey returns the id of the key that made a ciphertext, and reports whether it is not among these keys.
func (k *Keys) MissingKey(sealed []byte) (id uint32, missing bool) {
	id, ok := KeyID(sealed)
	return id, ok && !k.known[id]
}

// Describe returns the key for people, with the file that still has it if it was retired.
func (k *Keys) Describe(id uint32) string {
	if file, ok := k.retired[id]; ok {
		return fmt.Sprintf("key %d (retired to %s)", id, file)
	}
	return fmt.Sprintf("key %d", id)
}

// RetiredTo returns the name of the file, in the directory of the keyset, that was kept when a key was retired; "" if
// the key was not retired.
func (k *Keys) RetiredTo(id uint32) string { return k.retired[id] }

// Satisfies reports whether the keys can read what the keys of the proof have sealed.
func (k *Keys) Satisfies(proof Proof) bool {
	_, err := k.Unseal(proof.Sealed, proofPlace())
	return err == nil && k.Authenticates(proof)
}

// Authenticates reports whether the proof comes from an older or newer state of the same keyset: the fingerprint keys,
// which never change, are the same.
func (k *Keys) Authenticates(proof Proof) bool { return k.Matches(proof.Fingerprint, nil) }

// isSuccessorOf reports whether the keys can read what earlier ones have sealed. It checks the primary key and the
// fingerprint keys with a proof, and the others by id. Keys that were retired since may be missing.
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
