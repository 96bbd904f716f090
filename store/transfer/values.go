package transfer

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/store/database"
)

func as[T any](value any) (any, error) {
	if _, ok := value.(T); !ok {
		return nil, errors.New("the database returned a value of the wrong type")
	}
	return value, nil
}

func integer(value any) (any, error) { return as[int64](value) }

// boolean also accepts 0 and 1, because SQLite has no booleans.
func boolean(value any) (any, error) {
	if number, ok := value.(int64); ok && (number == 0 || number == 1) {
		return number == 1, nil
	}
	return as[bool](value)
}

func blob(value any) (any, error) { return as[[]byte](value) }

// text also accepts bytes, because some drivers return JSON that way.
func text(value any) (any, error) {
	if raw, ok := value.([]byte); ok {
		return string(raw), nil
	}
	return as[string](value)
}

func moment(value any) (any, error) {
	var at database.Time
	if err := at.Scan(value); err != nil {
		return nil, err
	}
	return at.Time, nil
}

func uuid(value any) (any, error) {
	s, err := text(value)
	if err != nil {
		return nil, err
	}
	return strings.ToLower(s.(string)), nil
}

// list returns the canonical form (RFC 8785) of a JSON list, because PostgreSQL adds white space.
func list(value any) (any, error) {
	s, err := text(value)
	if err != nil {
		return nil, err
	}
	canonical := jsontext.Value(s.(string))
	if canonical.Canonicalize() != nil {
		return nil, errors.New("value is not JSON")
	}
	return string(canonical), nil
}

// appendValue appends the encoding of a canonical value: a byte that is 0 for NULL and 1 otherwise, then the length and
// the value.
func appendValue(encoded []byte, value any) []byte {
	switch value := value.(type) {
	case int64:
		return binary.BigEndian.AppendUint64(append(encoded, 1, 8), uint64(value)) //nolint:gosec // Only the bits matter.
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
