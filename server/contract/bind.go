package contract

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Bind sets the fields of a request of the operation, a pointer to a struct of package model, to the members of a valid
// body. The request takes over their strings and texts. It returns an error if the struct lacks a field.
func (o Object) Bind(request any) error {
	into := reflect.ValueOf(request).Elem()
	o.operation.placing.Do(func() { o.operation.places = placesOf(into.Type()) })
	for name, value := range o.members {
		place, ok := o.operation.places[name]
		if !ok {
			return fmt.Errorf("the request has no field %s", name)
		}
		if text, ok := o.objects[name]; ok {
			value = text
		}
		if err := set(into.Field(place), value); err != nil {
			return fmt.Errorf("bind %s: %w", name, err)
		}
	}
	return nil
}

// placesOf returns the places of the fields of a struct by their names in JSON.
func placesOf(request reflect.Type) map[string]int {
	places := map[string]int{}
	for i := range request.NumField() {
		name, _, _ := strings.Cut(request.Field(i).Tag.Get("json"), ",")
		places[name] = i
	}
	return places
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
			if err := set(field.Index(i), element); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("a request cannot hold a %T", value)
	}
	return nil
}
