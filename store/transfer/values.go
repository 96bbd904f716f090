package transfer

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

func as[T any](value any) (any, error) {
	if _, ok := value.(T); !ok {
		return nil, errors.New("the database returns a value of another type")
	}
	return value, nil
}

func integer(value any) (any, error) { return as[int64](value) }

func boolean(value any) (any, error) { return as[bool](value) }

func blob(value any) (any, error) { return as[[]byte](value) }

// text takes bytes, too, since that is how some drivers return JSON.
func text(value any) (any, error) {
	if raw, ok := value.([]byte); ok {
		return string(raw), nil
	}
	return as[string](value)
}

// moment refuses the zero time, by which SQLite's driver says that it cannot read one.
func moment(value any) (any, error) {
	at, ok := value.(time.Time)
	if !ok || at.IsZero() {
		return nil, errors.New("it has no time that can be read")
	}
	return at.UTC().Truncate(time.Microsecond), nil
}

func uuid(value any) (any, error) {
	written, err := text(value)
	if err != nil {
		return nil, err
	}
	return strings.ToLower(written.(string)), nil
}

// list returns the canonical form of a list in JSON (RFC 8785): PostgreSQL writes it with white space.
func list(value any) (any, error) {
	written, err := text(value)
	if err != nil || written == "[]" || written == "" {
		return "[]", err
	}
	canonical := jsontext.Value(written.(string))
	if canonical.Canonicalize() != nil {
		return nil, errors.New("it has no JSON")
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
