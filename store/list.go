package store

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"gorm.io/gorm/schema"
)

// List is a list that is stored as JSON.
type List[T any] []T

// Scan implements schema.SerializerInterface. Its error names the column. NULL, which the table allows only in a column
// of the other kind, is nil.
func (l *List[T]) Scan(_ context.Context, column *schema.Field, _ reflect.Value, stored any) error {
	var text []byte
	switch stored := stored.(type) {
	case nil:
		return nil
	case string:
		text = []byte(stored)
	case []byte:
		text = stored
	}
	var list []T
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("%s is not a list: %w", column.DBName, err)
	}
	if list == nil {
		return fmt.Errorf("%s is null, not a list", column.DBName)
	}
	*l = list
	return nil
}

// text returns the list as JSON. A nil list is NULL.
func (l List[T]) text() any {
	if l == nil {
		return nil
	}
	if len(l) == 0 {
		return "[]"
	}
	text, err := json.Marshal(l)
	if err != nil {
		return nil
	}
	return string(text)
}

// Value implements schema.SerializerInterface.
func (l List[T]) Value(context.Context, *schema.Field, reflect.Value, any) (any, error) {
	return l.text(), nil
}
