package contract

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

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
