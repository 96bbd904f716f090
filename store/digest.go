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
	digest, err := digestOfColumns(keys, digestedColumns(record))
	if err != nil {
		err = fmt.Errorf("provider %d: %w", record.Common().PK, err)
	}
	return digest, err
}

// digestOfToken returns the digest of a token that was read. It returns ErrDamaged.
func digestOfToken(keys *loadedKeys, row readable[Token]) (string, error) {
	if row.damaged != nil {
		return "", row.damaged
	}
	token := row.value
	columns := map[string]any{
		"id": token.ID, "name": token.Name, "prefix": token.Prefix, "digest": token.Digest,
		"operations": token.Operations.text(), createdAt: token.CreatedAt.UnixMicro(),
		"expires_at": token.ExpiresAt.UnixMicro(),
	}
	if token.RevokedAt != nil {
		columns["revoked_at"] = token.RevokedAt.UnixMicro()
	}
	digest, err := digestOfColumns(keys, columns)
	if err != nil {
		err = fmt.Errorf("token %d: %w", token.ID, err)
	}
	return digest, err
}

// digestedColumns returns the columns of an opened record, and the slugs of the applications that it is linked to.
func digestedColumns(record Record) map[string]any {
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
	for role, application := range map[string]Application{serves: common.Application, backchannel: common.Backchannel.Application} {
		if application.ID != 0 {
			columns[role] = application.Slug
		}
	}
	return columns
}

// digestOfColumns returns the MAC of the version and the canonical JSON (RFC 8785) of columns, whose numbers keep their
// digits. It returns ErrDamaged if a string is not UTF-8.
func digestOfColumns(keys *loadedKeys, columns map[string]any) (string, error) {
	text, err := json.Marshal(columns)
	canonical := jsontext.Value(text)
	if err == nil {
		err = canonical.Canonicalize(jsontext.CanonicalizeRawInts(false))
	}
	if err != nil {
		return "", &damagedRowError{cause: err}
	}
	mac, err := keys.Digest(NewSecret(digestVersion + string(canonical)))
	if err != nil {
		return "", err
	}
	return digestVersion + ":" + base64.StdEncoding.EncodeToString(mac), nil
}
