package providerdtest

import (
	"bytes"
	"database/sql"
	"errors"
	"os"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// ClearKey is a key in cleartext.
type ClearKey struct {
	// Kind is "master", "data" for a key that encrypts secrets, or "digest".
	Kind string
	ID   uint32
	// Key is 32 bytes.
	Key []byte
}

// ClearKeys returns the master keys in a keyset file, and the keys in a database that they encrypt. Driver and source
// are those of database/sql.
func ClearKeys(path, driver, source string) ([]ClearKey, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	master, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content)))
	if err != nil {
		return nil, err
	}
	opener, err := aead.New(master)
	if err != nil {
		return nil, err
	}
	var id, secrets, digest []byte
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	err = db.QueryRow("SELECT database_id, secret_keys, digest_key FROM keyset").Scan(&id, &secrets, &digest)
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	keys := clearKeys("master", master)
	for kind, wrapped := range map[string][]byte{"data": secrets, "digest": digest} {
		opened, err := keyset.ReadWithAssociatedData(keyset.NewBinaryReader(bytes.NewReader(wrapped)), opener, id)
		if err != nil {
			return nil, err
		}
		keys = append(keys, clearKeys(kind, opened)...)
	}
	return keys, nil
}

func clearKeys(kind string, from *keyset.Handle) (keys []ClearKey) {
	for _, key := range insecurecleartextkeyset.KeysetMaterial(from).GetKey() {
		// The encoding of a key ends with the key itself.
		const size = 32
		encoded := key.GetKeyData().GetValue()
		keys = append(keys, ClearKey{Kind: kind, ID: key.GetKeyId(), Key: encoded[len(encoded)-size:]})
	}
	return keys
}
