package store

import (
	"fmt"
	"iter"
	"slices"

	"gorm.io/gorm"
)

// readable is what was read, or why it cannot be.
type readable[T any] struct {
	value   T
	damaged error
}

// damagedRowError is ErrDamaged for a row with a value that its column cannot have, such as a list that is not JSON.
type damagedRowError struct{ cause error }

// Error says what to do, too.
func (e *damagedRowError) Error() string {
	return fmt.Sprintf("its row is damaged: %v; put the value right, or restore a backup", e.cause)
}

// Unwrap returns ErrDamaged and the cause.
func (e *damagedRowError) Unwrap() []error { return []error{ErrDamaged, e.cause} }

// readRows reads the rows that a query selects. One that is damaged hides no other, and has its first columns, such as
// its key. The error is that of the query.
func readRows[Row any](query *gorm.DB) ([]readable[Row], error) {
	db := query.Session(&gorm.Session{NewDB: true})
	rows, err := query.Model(new(Row)).Rows()
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller says what is read.
	}
	defer func() { _ = rows.Close() }()
	var read []readable[Row]
	for rows.Next() {
		var one readable[Row]
		if err := db.ScanRows(rows, &one.value); err != nil {
			// The caller may have given up meanwhile.
			if rows.Err() != nil {
				break
			}
			one.damaged = &damagedRowError{cause: err}
		}
		read = append(read, one)
	}
	return read, db.AddError(rows.Err()) //nolint:wrapcheck // The caller says what is read.
}

// padded repeats the last element until there are a power of two: lists of few lengths make few statements, each of
// which is prepared once.
func padded[T any](list []T) []T {
	count := 1
	for count < len(list) {
		count *= 2
	}
	return append(slices.Clone(list), slices.Repeat(list[len(list)-1:], count-len(list))...)
}

// pageSize is how many rows are in memory at a time while a whole table is read.
const pageSize = 500

// pages hands on rows page by page. Each page is a statement of its own: a reader that held a transaction open for as
// long as somebody looks at its output would keep the WAL from being reset.
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
