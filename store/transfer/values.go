package transfer

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

var errUnexpected = errors.New("the database returns a value of another type")

// canonical turns what a database returned for a column into what every database takes for it. Equal values are then
// equal, whichever database they are from.
func (c column) canonical(value any) (any, error) {
	if value == nil {
		return nil, nil //nolint:nilnil // NULL is a value.
	}
	switch c.kind {
	case integer:
		return as[int64](value)
	case boolean:
		return as[bool](value)
	case blob:
		return as[[]byte](value)
	case moment:
		return canonicalTime(value)
	case text:
		return asText(value)
	case uuid:
		text, err := asText(value)
		return strings.ToLower(text), err
	case list:
		return canonicalList(value)
	default:
		return nil, errUnexpected
	}
}

func as[T any](value any) (T, error) {
	typed, ok := value.(T)
	if !ok {
		return typed, errUnexpected
	}
	return typed, nil
}

// asText takes bytes, too, since that is how some drivers return JSON.
func asText(value any) (string, error) {
	if raw, ok := value.([]byte); ok {
		return string(raw), nil
	}
	return as[string](value)
}

// canonicalTime refuses the zero time, by which SQLite's driver says that it cannot read one.
func canonicalTime(value any) (time.Time, error) {
	at, err := as[time.Time](value)
	if err == nil && at.IsZero() {
		err = errors.New("it has no time that can be read")
	}
	return at.UTC().Truncate(time.Microsecond), err
}

// canonicalList returns the canonical form of JSON (RFC 8785): PostgreSQL writes it with white space.
func canonicalList(value any) (string, error) {
	raw, err := asText(value)
	if err != nil || raw == "[]" || raw == "" {
		return "[]", err
	}
	canonical := jsontext.Value(raw)
	if canonical.Canonicalize() != nil {
		return "", errors.New("it has no JSON")
	}
	return string(canonical), nil
}

// appendValue adds the encoding of a canonical value: a byte that tells NULL from others, and the value behind its
// length.
func appendValue(encoded []byte, value any) []byte {
	switch value := value.(type) {
	case int64:
		return binary.BigEndian.AppendUint64(append(encoded, 1, 8), uint64(value)) //nolint:gosec // Its bits count.
	case bool:
		if value {
			return append(encoded, 1, 1, 1)
		}
		return append(encoded, 1, 1, 0)
	case time.Time:
		return appendValue(encoded, value.UnixMicro())
	case string:
		return append(binary.AppendUvarint(append(encoded, 1), uint64(len(value))), value...)
	case []byte:
		return append(binary.AppendUvarint(append(encoded, 1), uint64(len(value))), value...)
	default:
		return append(encoded, 0)
	}
}
