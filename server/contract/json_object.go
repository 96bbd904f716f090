package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// maxNesting limits how deeply objects and arrays can be nested, including the body itself.
const maxNesting = 64

// fileName matches a body that was meant to be read from a file.
var fileName = regexp.MustCompile(`^\s*@?[\w./~-]{1,255}\.(json|ya?ml)\s*$`)

// otherFormat matches the beginning of a form, YAML or XML.
var otherFormat = regexp.MustCompile(`^\s*(<|--|- |[\w.%+\[\]-]{1,64}\s*[=:])`)

// quoted matches a JSON object in quotation marks.
var quoted = regexp.MustCompile("^\\s*[\"'`“‘]\\s*\\{")

// Object is a body that was read.
type Object struct {
	operation *Operation
	// members holds the members that the contract defines. Objects, and lists where the contract has none, are empty here,
	// because their contents would take many times the size of the body.
	members map[string]any
	// objects holds the text of each member that is an object, which is part of the body.
	objects map[string]jsontext.Value
	// unknown holds the names of the other members in order, up to one more than a response can list.
	unknown []string
	// mayHaveNUL is true if a string or name may contain U+0000.
	mayHaveNUL bool
}

// Read reads a body, which must be exactly one JSON object (RFC 8259) in valid UTF-8, without a byte order mark,
// repeated member names, lone surrogates, deep nesting, or anything after the object. Otherwise it returns a
// *MalformedError with the byte offset and, if there is one, the pointer.
func (o *Operation) Read(body []byte) (Object, error) {
	reader := o.readers.Get().(*objectReader)
	reader.reset(body)
	defer o.release(reader)
	kind := reader.decoder.PeekKind()
	switch {
	case kind == '{' && !bytes.HasPrefix(body, []byte("{\x00")):
	case follows(body, 0) == int64(len(body)):
		return Object{}, malformed("The body is empty. Send one JSON object; with curl -d @FILE, check that the file exists.")
	case bytes.HasPrefix(body, []byte("\xef\xbb\xbf")):
		return Object{}, malformed("The body begins with a byte order mark. Remove it.")
	case !utf8.Valid(body), bytes.IndexByte(body, 0) >= 0:
		return Object{}, malformed("The body is compressed, or in an encoding other than UTF-8, such as UTF-16. " +
			"Send the JSON in UTF-8, uncompressed.")
	case fileName.Match(body):
		return Object{}, malformed("The body is the name of a file instead of its contents. With curl, use -d @FILE.")
	case quoted.Match(body):
		return Object{}, malformed("The body is a string of JSON. Send the object itself, without quotation marks around it.")
	case otherFormat.Match(body):
		return Object{}, malformed(`The body is a form, YAML or XML. Send one JSON object, such as {"name": "Wiki", …}.`)
	case kind != 0:
		return Object{}, malformed(map[bool]string{
			true: "The body is a list. Send one object per request.", false: "The body is not a JSON object. Send exactly one.",
		}[kind == '['])
	}
	result, err := reader.members(o)
	if err != nil {
		return Object{}, err
	}
	if offset := follows(body, reader.decoder.InputOffset()); offset < int64(len(body)) {
		return Object{}, malformed(position(body, offset) + ": something follows the JSON object. Send exactly one.")
	}
	// JSON allows U+0000 in strings only in this form.
	result.mayHaveNUL = bytes.Contains(body, []byte(`\u0000`))
	return result, nil
}

// maxReused is the maximum length of a body whose reader is used again. Longer ones may leave large buffers in it.
const maxReused = 4 << 10

func (o *Operation) release(reader *objectReader) {
	if len(reader.body) <= maxReused {
		reader.reset(nil)
		o.readers.Put(reader)
	}
}

// objectReader reads a body once, from its first byte to its last.
type objectReader struct {
	body    []byte
	buffer  bytes.Buffer
	decoder jsontext.Decoder
}

func (r *objectReader) reset(body []byte) {
	r.body, r.buffer = body, *bytes.NewBuffer(body)
	r.decoder.Reset(&r.buffer)
}

// next reads a token. It is valid until the next one is read.
func (r *objectReader) next() (jsontext.Token, error) {
	token, err := r.decoder.ReadToken()
	if err != nil {
		return jsontext.Token{}, syntaxError(r.body, &r.decoder, err)
	}
	if r.decoder.StackDepth() > maxNesting {
		return jsontext.Token{}, malformed(fmt.Sprintf("%s: nesting exceeds %d levels.",
			position(r.body, r.decoder.InputOffset()-int64(len("["))), maxNesting))
	}
	return token, nil
}

func (r *objectReader) members(op *Operation) (Object, error) {
	result := Object{operation: op, members: map[string]any{}}
	if _, err := r.next(); err != nil {
		return Object{}, err
	}
	for {
		token, err := r.next()
		if err != nil {
			return Object{}, err
		}
		if token.Kind() == '}' {
			return result, nil
		}
		switch field := op.field(token.String()); {
		case field == nil:
			if len(result.unknown) <= maxViolations {
				result.unknown = append(result.unknown, token.String())
			}
			_, err = r.value(nil, nil)
		case r.decoder.PeekKind() == '{':
			result.members[field.name] = map[string]any(nil)
			if result.objects == nil {
				result.objects = map[string]jsontext.Value{}
			}
			result.objects[field.name], err = r.object()
		default:
			result.members[field.name], err = r.value(field.rules.Enum, field.items)
		}
		if err != nil {
			return Object{}, err
		}
	}
}

func (r *objectReader) object() (jsontext.Value, error) {
	if _, err := r.next(); err != nil {
		return nil, err
	}
	begin := r.decoder.InputOffset() - int64(len("{"))
	if err := r.skip(); err != nil {
		return nil, err
	}
	return r.body[begin:r.decoder.InputOffset()], nil
}

// value reads a scalar, or a list of scalars if items is their schema. The contents of other lists and objects are
// skipped, except that a list shows if it begins with an object.
func (r *objectReader) value(enum []any, items *openapi3.Schema) (any, error) {
	token, err := r.next()
	if err != nil {
		return nil, err
	}
	switch byte(token.Kind()) {
	case '"':
		for _, value := range enum {
			if text, ok := value.(string); ok && text == token.String() {
				return value, nil
			}
		}
		return token.String(), nil
	case '0':
		return json.Number(token.String()), nil
	case 't', 'f':
		return token.Bool(), nil
	case '{':
		return map[string]any(nil), r.skip()
	case '[':
		return r.list(items)
	default:
		return nil, nil //nolint:nilnil // This represents null.
	}
}

// list reads the rest of a list, and skips it if items is nil.
func (r *objectReader) list(items *openapi3.Schema) (list []any, err error) {
	if items == nil {
		if r.decoder.PeekKind() == '{' {
			list = []any{map[string]any(nil)}
		}
		return list, r.skip()
	}
	list = []any{}
	for r.decoder.PeekKind() != ']' {
		value, err := r.value(items.Enum, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err = r.next()
	return list, err
}

// skip reads the rest of an object or list.
func (r *objectReader) skip() error {
	for depth := r.decoder.StackDepth(); r.decoder.StackDepth() >= depth; {
		if _, err := r.next(); err != nil {
			return err
		}
	}
	return nil
}

// Bind sets the fields of a request, which is a pointer to a struct of package model, to the members of a valid body.
// The request takes over strings, and the texts of objects, which keep the body in memory.
func (o Object) Bind(request any) error {
	into := reflect.ValueOf(request).Elem()
	// The generator sorts the fields by these names, too.
	for i, name := range o.operation.sorted {
		value, ok := o.members[name]
		if text, isObject := o.objects[name]; isObject {
			value = text
		}
		if !ok || value == nil {
			continue
		}
		if err := set(into.Field(i), value); err != nil {
			return fmt.Errorf("bind %s: %w", name, err)
		}
	}
	return nil
}

// set sets a field, or what it points to, to a value that was read.
func set(field reflect.Value, value any) (err error) {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch value := value.(type) {
	case bool:
		field.SetBool(value)
	case jsontext.Value:
		field.SetBytes(value)
	case []any:
		field.Set(reflect.MakeSlice(field.Type(), len(value), len(value)))
		for i := 0; i < len(value) && err == nil; i++ {
			err = set(field.Index(i), value[i])
		}
	case string:
		if id, ok := reflect.TypeAssert[*uuid.UUID](field.Addr()); ok {
			*id, err = uuid.Parse(value)
		} else {
			field.SetString(value)
		}
	default:
		err = fmt.Errorf("a request cannot hold a %T", value)
	}
	return err
}
