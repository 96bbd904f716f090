package contract

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// names are those of the fields of a struct in JSON, in the order of the fields.
type names struct {
	once sync.Once
	list []string
}

// of returns the names for a type, which must always be the same.
func (n *names) of(request reflect.Type) []string {
	n.once.Do(func() {
		for i := range request.NumField() {
			name, _, _ := strings.Cut(request.Field(i).Tag.Get("json"), ",")
			n.list = append(n.list, name)
		}
	})
	return n.list
}

// Bind sets the fields of a request, which is a pointer to a struct of package model, to the members of a valid body.
// The request takes over strings, and the texts of objects, which keep the body in memory. It returns an error if the
// struct lacks a field.
func (o Object) Bind(request any) error {
	into, bound := reflect.ValueOf(request).Elem(), 0
	for i, name := range o.operation.request.of(into.Type()) {
		value, ok := o.members[name]
		if !ok {
			continue
		}
		if text, ok := o.objects[name]; ok {
			value = text
		}
		if err := set(into.Field(i), value); err != nil {
			return fmt.Errorf("bind %s: %w", name, err)
		}
		bound++
	}
	if bound < len(o.members) {
		return errors.New("the request lacks a field of the contract")
	}
	return nil
}

// set sets a field, or what it points to, to a value that was read. null leaves it nil.
func set(field reflect.Value, value any) (err error) {
	if field.Kind() == reflect.Pointer && value != nil {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch value := value.(type) {
	case nil:
	case bool:
		field.SetBool(value)
	case string:
		if id, ok := field.Addr().Interface().(*uuid.UUID); ok {
			*id, err = uuid.Parse(value)
			return err //nolint:wrapcheck // The caller names the field.
		}
		field.SetString(value)
	case jsontext.Value:
		field.SetBytes(value)
	case []any:
		field.Set(reflect.MakeSlice(field.Type(), len(value), len(value)))
		for i, element := range value {
			err = errors.Join(err, set(field.Index(i), element))
		}
	default:
		return fmt.Errorf("a request cannot hold a %T", value)
	}
	return err
}
