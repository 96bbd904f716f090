package store

import (
	"fmt"
	"iter"
	"slices"

	"gorm.io/gorm"
)

// readable is a value that was read, or why it cannot be read.
type readable[T any] struct {
	value   T
	damaged error
}

// damagedRowError is ErrDamaged for a row with an invalid value, such as a list that is not JSON.
type damagedRowError struct{ cause error }

// Error includes what to do.
func (e *damagedRowError) Error() string {
	return fmt.Sprintf("its row is damaged: %v; correct the value or restore a backup", e.cause)
}

// Unwrap returns ErrDamaged and the cause.
func (e *damagedRowError) Unwrap() []error { return []error{ErrDamaged, e.cause} }

// readRows reads the rows that a query selects. A damaged row does not hide others, and has its first columns, such as
// its key. The error is that of the query.
func readRows[Row any](query *gorm.DB) ([]readable[Row], error) {
	db := query.Session(&gorm.Session{NewDB: true})
	rows, err := query.Model(new(Row)).Rows()
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller adds what is read.
	}
	defer func() { _ = rows.Close() }()
	var read []readable[Row]
	for rows.Next() {
		var row readable[Row]
		if err := db.ScanRows(rows, &row.value); err != nil {
			// The context may have ended.
			if rows.Err() != nil {
				break
			}
			row.damaged = &damagedRowError{cause: err}
		}
		read = append(read, row)
	}
	return read, db.AddError(rows.Err()) //nolint:wrapcheck // The caller adds what is read.
}

// padded repeats the last element until the length is a power of two, so that there are few different statements, each
// prepared once.
func padded[T any](list []T) []T {
	count := 1
	for count < len(list) {
		count *= 2
	}
	return append(slices.Clone(list), slices.Repeat(list[len(list)-1:], count-len(list))...)
}

// pageSize is the number of rows in memory while a whole table is read.
const pageSize = 500

// pages yields rows, read page by page. Each page is a separate statement: a transaction held open while a person reads
// the output would keep the WAL from being reset.
func pages[Row any](read func(last *Row) ([]Row, error)) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var last *Row
		for {
			page, err := read(last)
			if err != nil {
				var none Row
				yield(none, err)
				return
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			last = &page[len(page)-1]
		}
	}
}
