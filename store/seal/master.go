package seal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"example.com/providerd/store/files"
)

// MasterKeys are the keys of a keyset file, a Tink keyset in JSON. They encrypt data keys, and nothing else.
type MasterKeys struct{ keyring }

// NewMasterKeys returns a new master key.
func NewMasterKeys() (*MasterKeys, error) { return masterOf(newKeyring()) }

func masterOf(ring keyring, err error) (*MasterKeys, error) { return &MasterKeys{ring}, err }

// WithNew returns these keys and a new one, which is primary.
func (m *MasterKeys) WithNew() (*MasterKeys, error) { return masterOf(m.with()) }

// OnlyPrimary returns the primary key.
func (m *MasterKeys) OnlyPrimary() (*MasterKeys, error) { return masterOf(m.without(nil)) }

// ReadMasterKeys reads a keyset file. It returns ErrNoKeyset or ErrKeysetUnusable.
func ReadMasterKeys(path string) (*MasterKeys, error) {
	content, err := files.ReadSmall(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s; restore it, or pass its path with --keyset; without it the secrets in the "+
			"database cannot be decrypted", ErrNoKeyset, path)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: %w", ErrKeysetUnusable, err)
	case err != nil:
		return nil, fmt.Errorf("%w: %s; restore the right one", ErrKeysetUnusable, err.Error())
	}
	const groupOrOthers = 0o077
	if file, err := os.Stat(path); err != nil || file.Mode().Perm()&groupOrOthers != 0 {
		return nil, fmt.Errorf("%w: other users can read %s; run chmod 600 on it", ErrKeysetUnusable, path)
	}
	// The errors of Tink may quote the content.
	ring, err := keyringOf(insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content))))
	if err != nil {
		wrong := "not a Tink keyset of AEAD keys; restore the right one"
		if len(content) == 0 {
			wrong = "empty; restore the right one"
		} else if decoded, _ := base64.StdEncoding.DecodeString(string(content)); bytes.HasPrefix(decoded, []byte("{")) {
			wrong = "Base64; decode it with base64 --decode"
		}
		return nil, fmt.Errorf("%w: %s is %s", ErrKeysetUnusable, path, wrong)
	}
	return &MasterKeys{ring}, nil
}

// Create writes the keys to a new file that only its owner can read, or returns fs.ErrExist or a file system error.
func (m *MasterKeys) Create(path string, owner files.Owner) error {
	return files.Create(path, owner, func(to io.Writer) error {
		return insecurecleartextkeyset.Write(m.handle, keyset.NewJSONWriter(to))
	})
}

// ReadOrCreateMasterKeys reads a keyset file, and creates it with one key if there is none. If several programs do so,
// one wins. It returns ErrKeysetUnusable or a file system error.
func ReadOrCreateMasterKeys(path string) (*MasterKeys, error) {
	if keys, err := ReadMasterKeys(path); !errors.Is(err, ErrNoKeyset) {
		return keys, err
	}
	keys, err := NewMasterKeys()
	if err != nil {
		return nil, err
	}
	// Whom root gives the file to could have put another keyset there anyway.
	owner, err := files.OwnerFor(path)
	if err != nil {
		return nil, err
	}
	if err := keys.Create(path, owner); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return ReadMasterKeys(path)
}
