package store

import (
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/store/keyset"
	"example.com/providerd/store/rows"
	"example.com/providerd/store/seal"
)

// digestVersion is the version of digests. It changes if the text that they are made of does.
const digestVersion = "v1"

// digestOf returns the digest of a record that was read: a MAC of its columns except those that are NULL or have their
// defaults, and of the secret in plain text. Rotating keys, resealing, copying and new columns leave it unchanged. It
// returns ErrDamaged.
func digestOf(keys *keyset.Loaded, row rows.Row[Record]) (*string, error) {
	if row.Damaged != nil {
		return nil, row.Damaged
	}
	record, err := open(keys, row.Value)
	if err != nil {
		return nil, err
	}
	return digestOfJSON(keys, "provider", record.Common().PK, digestedColumns(record))
}

// digestedColumns returns the columns of an opened record, and the slugs of the applications that it is linked to.
func digestedColumns(record Record) map[string]any {
	common := record.Common()
	_, secret := record.secret()
	columns := map[string]any{pkColumn: common.PK}
	for _, column := range append(common.columns(), record.settings(visitor{omits: true})...) {
		if column.value != nil {
			columns[column.name] = column.value
		}
	}
	columns[createdAt], columns["secret"] = common.CreatedAt.UnixMicro(), secret.Reveal()
	links := map[string]Application{serves: common.Application, backchannel: common.Backchannel.Application}
	for role, link := range links {
		if link.ID != 0 {
			columns[role] = link.Slug
		}
	}
	return columns
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
