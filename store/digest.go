package store

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// digestVersion is the version of digests. It changes if the text that they are made of does.
const digestVersion = "v1"

// digestOf returns the digest of a record that was read: a MAC of all its columns that are not NULL, and of the secret
// in plain text. Rotating keys, resealing, copying and new columns leave it unchanged. It returns ErrDamaged.
func digestOf(keys *loadedKeys, row readable[Record]) (string, error) {
	if row.damaged != nil {
		return "", row.damaged
	}
	record, err := open(keys, row.value)
	if err != nil {
		return "", err
	}
	text, err := digestText(record)
	if err != nil {
		return "", fmt.Errorf("provider %d: %w", record.Common().PK, &damagedRowError{cause: err})
	}
	mac, err := keys.Digest(NewSecret(text))
	if err != nil {
		return "", err
	}
	return digestVersion + ":" + base64.StdEncoding.EncodeToString(mac), nil
}

// digestText returns the version and the canonical JSON (RFC 8785) of an opened record, whose numbers keep their
// digits. It returns an error if the record is not UTF-8.
func digestText(record Record) (string, error) {
	common := record.Common()
	_, secret := record.secret()
	columns := map[string]any{pkColumn: common.PK}
	for _, column := range append(common.columns(), record.settings()...) {
		if at, ok := column.value.(time.Time); ok {
			column.value = at.UnixMicro()
		}
		if column.value != nil {
			columns[column.name] = column.value
		}
	}
	columns["secret"] = secret.Reveal()
	text, err := json.Marshal(columns)
	if err != nil {
		return "", fmt.Errorf("write JSON: %w", err)
	}
	canonical := jsontext.Value(text)
	if err := canonical.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return "", fmt.Errorf("write canonical JSON: %w", err)
	}
	return digestVersion + string(canonical), nil
}
