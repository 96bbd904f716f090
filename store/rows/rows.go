// Package rows reads the rows of a query one by one, so that a damaged one does not hide others, and those of a table
// page by page. A List is a list in a column.
//
// Start with Read and Pages.
package rows

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"example.com/providerd/store/seal"
)

// Row is a value that was read, or why it cannot be read.
type Row[T any] struct {
	Value   T
	Damaged error
}

// DamagedError is seal.ErrDamaged for a row with an invalid value, such as a list that is not JSON.
type DamagedError struct{ Cause error }

// Error says which value is invalid.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("its row is damaged: %v", e.Cause)
}

// Unwrap returns ErrDamaged and the cause.
func (e *DamagedError) Unwrap() []error { return []error{seal.ErrDamaged, e.Cause} }

// Read reads the rows that a query selects. scan scans the current row into models; a row that is damaged does not
// hide others. The error is the error of the query.
func Read[T any](query *gorm.DB, scan func(into func(model any) error) (T, error)) ([]Row[T], error) {
	db := query.Session(&gorm.Session{NewDB: true})
	rows, err := query.Rows()
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller adds what is read.
	}
	defer func() { _ = rows.Close() }()
	// A damaged row has its first columns, such as its key.
	into := func(model any) error {
		if err := db.ScanRows(rows, model); err != nil {
			return &DamagedError{Cause: err}
		}
		return nil
	}
	var read []Row[T]
	for rows.Next() {
		value, damaged := scan(into)
		// The context may have ended.
		if rows.Err() == nil {
			read = append(read, Row[T]{value, damaged})
		}
	}
	return read, db.AddError(rows.Err()) //nolint:wrapcheck // The caller adds what is read.
}

// PageSize is the number of rows in memory while a whole table is read.
const PageSize = 500

// Pages yields the rows that a query selects, with keys after one, in the order of the keys in a column, page by page:
// a transaction held open while a person reads the output would keep the WAL from being reset.
func Pages[Row any](
	query *gorm.DB, column string, after int64, key func(Row) int64, read func(page *gorm.DB) ([]Row, error),
) iter.Seq2[Row, error] {
	query = query.Order(column).Limit(PageSize).Session(&gorm.Session{})
	return func(yield func(Row, error) bool) {
		after := after
		for isLast := false; !isLast; {
			page, err := read(query.Where(column+" > ?", after))
			if err != nil {
				yield(*new(Row), err)
				return
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
				after = key(row)
			}
			isLast = len(page) < PageSize
		}
	}
}

// Find reads the rows that a query selects.
func Find[Row any](query *gorm.DB) (found []Row, err error) {
	if query = query.Find(&found); query.Error != nil {
		return nil, fmt.Errorf("read %s: %w", query.Statement.Table, query.Error)
	}
	return found, nil
}

// Values yields the values of rows, or why they cannot be read.
func Values[T any](rows iter.Seq2[Row[T], error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for row, err := range rows {
			if !yield(row.Value, cmp.Or(err, row.Damaged)) {
				return
			}
		}
	}
}

// List is a list that is stored as JSON.
type List[T any] []T

// Scan implements schema.SerializerInterface. Its error names the column. NULL is an empty list.
func (l *List[T]) Scan(_ context.Context, column *schema.Field, _ reflect.Value, stored any) error {
	var text []byte
	switch stored := stored.(type) {
	case nil:
		*l = List[T]{}
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

// Text returns the list as JSON. A nil list is NULL.
func (l List[T]) Text() any {
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
	return l.Text(), nil
}
