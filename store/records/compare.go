package records

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/store/seal"
)

// Differing returns the names of the fields that differ in meaning between a record and a request, both opened. A value
// that the server chose equals one that the request lets it choose. It returns ErrDamaged.
func Differing(stored, requested Record) (fields []string, err error) {
	chosen := stored.Common().Generated & requested.Common().Generated
	if stored.Common().Name != requested.Common().Name {
		fields = append(fields, "name")
	}
	form := visitor{normalizes: hasOtherSettings(stored, requested)}
	wanted := requested.settings(form)
	for i, column := range stored.settings(form) {
		isChosen := column.Name == ClientIDColumn && chosen&GeneratedClientID != 0
		if column.Value != wanted[i].Value && !isChosen {
			fields = append(fields, column.Name)
		}
	}
	if isReordered(stored, requested) {
		isSame, err := isSameJSON(stored, requested)
		if isSame || err != nil {
			return fields, err
		}
	}
	field, secret := stored.secret()
	_, requestedSecret := requested.secret()
	// What the server chooses depends on the client_type.
	isChosen := chosen&GeneratedSecret != 0 && !slices.Contains(fields, "client_type")
	if !secret.Equal(requestedSecret) && !isChosen {
		fields = append(fields, field)
	}
	return fields, nil
}

// MustNormalize reports whether two records must be brought into the same form to find out what differs.
func MustNormalize(a, b Record) bool { return hasOtherSettings(a, b) || isReordered(a, b) }

func hasOtherSettings(a, b Record) bool { return !slices.Equal(a.settings(all()), b.settings(all())) }

// isReordered reports whether the credentials of two records can be the same JSON with members in another order. They
// are in the shortest form, so their lengths are then equal.
func isReordered(a, b Record) bool {
	field, secret := a.secret()
	_, other := b.secret()
	return field == "credentials" && len(secret.Reveal()) == len(other.Reveal()) && secret.Reveal() != other.Reveal()
}

// isSameJSON compares credentials in canonical form (RFC 8785), except that numbers keep their digits.
func isSameJSON(a, b Record) (bool, error) {
	var texts [2]jsontext.Value
	for i, record := range []Record{a, b} {
		_, secret := record.secret()
		texts[i] = jsontext.Value(secret.Reveal())
		err := texts[i].Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
		if err != nil {
			return false, fmt.Errorf("compare credentials: %w", seal.ErrDamaged)
		}
	}
	return bytes.Equal(texts[0], texts[1]), nil
}

// IsSame reports whether two opened records are equal, regardless of links and of sealing keys.
func IsSame(a, b Record) bool {
	plain := func(record Record) Record {
		common := record.Common()
		common.Sealed, common.Application, common.Backchannel = nil, Application{}, Backchannel{}
		_, secret := record.secret()
		return record.with(common, secret)
	}
	return reflect.DeepEqual(plain(a), plain(b))
}

// Digested returns the columns of an opened record, and the slugs of the applications that it is linked to.
func Digested(record Record) map[string]any {
	common := record.Common()
	_, secret := record.secret()
	columns := map[string]any{PKColumn: common.PK}
	for _, column := range append(common.Columns(), record.settings(visitor{omits: true})...) {
		if column.Value != nil {
			columns[column.Name] = column.Value
		}
	}
	columns[CreatedAtColumn], columns["secret"] = common.CreatedAt.UnixMicro(), secret.Reveal()
	links := map[string]Application{RoleApplication: common.Application, RoleBackchannel: common.Backchannel.Application}
	for role, link := range links {
		if link.ID != 0 {
			columns[role] = link.Slug
		}
	}
	return columns
}
