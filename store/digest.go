package store

import (
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/store/keyset"
	"example.com/providerd/store/records"
	"example.com/providerd/store/rows"
	"example.com/providerd/store/seal"
)

// digestVersion is the version of digests. It changes if the text that they are made of does.
const digestVersion = "v1"

// digestOf returns the digest of a record that was read: a MAC of its columns except those that are NULL or have their
// defaults, and of the secret in plain text. Rotating keys, resealing, copying and new columns leave it unchanged. It
// returns ErrDamaged.
func digestOf(keys *keyset.Loaded, row rows.Row[records.Record]) (*string, error) {
	if row.Damaged != nil {
		return nil, row.Damaged
	}
	record, err := records.Unseal(keys.Keys, row.Value)
	if err != nil {
		return nil, err
	}
	return digestOfJSON(keys, "provider", record.Common().PK, records.Digested(record))
}

// digestOfJSON returns the MAC of the version and the canonical JSON (RFC 8785) of a record, whose numbers keep their
// digits. It returns ErrDamaged, with the name and the key of the record, if a string is not UTF-8.
func digestOfJSON(keys *keyset.Loaded, name string, key int64, record any) (*string, error) {
	text, err := json.Marshal(record)
	canonical := jsontext.Value(text)
	if err == nil {
		err = canonical.Canonicalize(jsontext.CanonicalizeRawInts(false))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %d: %w", name, key, &rows.DamagedError{Cause: err})
	}
	mac, err := keys.Digest(seal.NewSecret(digestVersion + string(canonical)))
	return new(digestVersion + ":" + base64.StdEncoding.EncodeToString(mac)), err
}
