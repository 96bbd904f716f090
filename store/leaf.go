package store

import (
	"context"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/seal"
)

// Leaf is the leaf hash (RFC 6962, section 2.1) of the canonical JSON (RFC 8785) of a row: an object with each column
// that is not NULL, in which a MAC stands for a secret. Rotating keys, resealing and copying leave it unchanged. It is
// nil if it is not known.
type Leaf []byte

// leafOf returns the leaf of a record, whose rows are one in providers and one in the table of its kind. It returns
// ErrDamaged if the record is not UTF-8.
func leafOf(db *gorm.DB, keys *seal.Keys, record Record) (Leaf, error) {
	creation, settings := record.Common().Creation, settingsOf(record)
	creation.CreatedAt = creation.CreatedAt.UTC()
	columns := map[string]any{}
	for _, row := range []any{&creation, settings} {
		if err := addColumns(db, row, columns); err != nil {
			return nil, err
		}
	}
	column, secret := settings.secret()
	var err error
	if columns[column.name], err = keys.AuthenticateSecret(secret, column.table+"."+column.name); err != nil {
		return nil, fmt.Errorf("authenticate secret: %w", err)
	}
	leaf, err := hashColumns(columns)
	if err != nil {
		return nil, fmt.Errorf("provider %d: %w: %w", creation.PK, ErrDamaged, err)
	}
	return leaf, nil
}

// addColumns adds the columns of a row that are not NULL.
func addColumns(db *gorm.DB, row any, columns map[string]any) error {
	table, err := database.TableOf(db, row)
	if err != nil {
		return fmt.Errorf("read the model: %w", err)
	}
	for _, field := range table.Fields {
		value := field.ReflectValueOf(context.Background(), reflect.ValueOf(row).Elem())
		if kind := value.Kind(); (kind == reflect.Pointer || kind == reflect.Slice) && value.IsNil() {
			continue
		}
		columns[field.DBName] = value.Interface()
	}
	return nil
}

// hashColumns returns the leaf of the columns of a row. It returns an error if they are not UTF-8.
func hashColumns(columns map[string]any) (Leaf, error) {
	text, err := json.Marshal(columns)
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	if err := (*jsontext.Value)(&text).Canonicalize(); err != nil {
		return nil, fmt.Errorf("write canonical JSON: %w", err)
	}
	hash := tlog.RecordHash(text)
	return hash[:], nil
}

// leavesOf returns the leaves of stored records, except for damaged ones.
func leavesOf(tx *gorm.DB, keys *seal.Keys, pks []int32) (map[int32]Leaf, error) {
	records, err := recordsIn(tx, keys, pks)
	if err != nil {
		return nil, err
	}
	leaves := map[int32]Leaf{}
	for pk, record := range records {
		if record.damaged != nil {
			continue
		}
		if leaf, err := leafOf(tx, keys, record.value); err == nil {
			leaves[pk] = leaf
		}
	}
	return leaves, nil
}
