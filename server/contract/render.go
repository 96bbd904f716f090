package contract

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// typicalRecord is more than the length of most records, in bytes.
const typicalRecord = 1280

// Render returns what encoding/json writes for a record of the operation, which is a pointer to a struct of package
// model, and a line end. It returns an error for a record that cannot be written as JSON.
func (o *Operation) Render(record any) (text []byte, err error) {
	from, before := reflect.ValueOf(record).Elem(), `{"`
	text = make([]byte, 0, typicalRecord)
	for i, name := range o.record.of(from.Type()) {
		text = append(append(append(text, before...), name...), `":`...)
		if text, err = appendValue(text, from.Field(i)); err != nil {
			return nil, fmt.Errorf("render %s: %w", name, err)
		}
		before = `,"`
	}
	return append(text, "}\n"...), nil
}

// appendValue appends what encoding/json writes for a value, and leaves what is rare to it.
func appendValue(text []byte, value reflect.Value) ([]byte, error) {
	switch kind := value.Kind(); {
	case kind == reflect.Pointer && value.IsNil():
		return append(text, "null"...), nil
	case kind == reflect.Pointer:
		return appendValue(text, value.Elem())
	case kind == reflect.Bool:
		return strconv.AppendBool(text, value.Bool()), nil
	case kind == reflect.Int64:
		return strconv.AppendInt(text, value.Int(), 10), nil
	case kind == reflect.String && utf8.ValidString(value.String()):
		return appendText(text, value.String()), nil
	}
	switch field := value.Addr().Interface().(type) {
	case *uuid.UUID:
		return append(append(append(text, '"'), field.String()...), '"'), nil
	case *[]uuid.UUID:
		if *field != nil {
			return appendList(text, *field), nil
		}
	}
	other, err := json.Marshal(value.Addr().Interface())
	return append(text, other...), err //nolint:wrapcheck // Render does.
}

func appendList(text []byte, ids []uuid.UUID) []byte {
	text = append(text, '[')
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, '"'), id.String()...), '"')
	}
	return append(text, ']')
}

// appendText appends a string in UTF-8.
func appendText(text []byte, value string) []byte {
	text = append(text, '"')
	written := 0
	for i, r := range value {
		if isEscaped(r) {
			text = appendEscaped(append(text, value[written:i]...), r)
			written = i + utf8.RuneLen(r)
		}
	}
	return append(append(text, value[written:]...), '"')
}

func isEscaped(r rune) bool {
	switch r {
	case '"', '\\', '<', '>', '&', '\u2028', '\u2029':
		return true
	default:
		return r < ' '
	}
}

func appendEscaped(text []byte, r rune) []byte {
	if i := strings.IndexRune("\"\\\b\f\n\r\t", r); i >= 0 {
		return append(text, '\\', `"\bfnrt`[i])
	}
	const digits = "0123456789abcdef"
	return append(text, '\\', 'u', digits[r>>12], digits[r>>8&0xf], digits[r>>4&0xf], digits[r&0xf])
}
