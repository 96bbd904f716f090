package sqlite

import (
	"context"
	"fmt"
	"math/bits"
	"reflect"
	"strings"

	"example.com/providerd/store/database"
)

// maxChunk is the maximum number of rows per INSERT.
const maxChunk = 64

// inserts are the INSERT statements of one table, for powers of two rows, so that few statements are prepared. They
// skip rows whose unique values are taken.
type inserts struct {
	table database.Table
	// statements are cached by number of rows.
	statements map[int]string
}

// text returns the INSERT for a number of rows. With OR IGNORE, no constraint can abort a statement of many rows, so
// SQLite needs no statement journal. OR IGNORE also skips rows that violate constraints other than UNIQUE.
func (i inserts) text(rows int) string {
	text, ok := i.statements[rows]
	if !ok {
		row := ",(?" + strings.Repeat(",?", len(i.table.Columns)-1) + ")"
		text = fmt.Sprintf("INSERT OR IGNORE INTO `%s` (`%s`) VALUES %s",
			i.table.Name, strings.Join(i.table.Columns, "`,`"), strings.Repeat(row, rows)[1:])
		i.statements[rows] = text
	}
	return text
}

// Insert inserts each list, and returns how many rows of each were skipped.
func (b *batches) Insert(lists ...any) (skipped []int, err error) {
	if !b.hasRows {
		if err := incrementGeneration(b.database.files, b.tx); err != nil {
			return nil, err
		}
		b.hasRows = true
	}
	for _, list := range lists {
		rows := reflect.ValueOf(list)
		inserted, err := b.insert(rows)
		if err != nil {
			return nil, err
		}
		skipped = append(skipped, rows.Len()-inserted)
	}
	return skipped, nil
}

// insert inserts one list, and returns how many rows were not skipped.
func (b *batches) insert(rows reflect.Value) (inserted int, err error) {
	if rows.Len() == 0 {
		return 0, nil
	}
	statements, ok := b.inserts[rows.Type()]
	if !ok {
		table, err := database.TableOf(b.tx, rows.Interface())
		if err != nil {
			return 0, err
		}
		statements = inserts{table: table, statements: map[int]string{}}
		b.inserts[rows.Type()] = statements
	}
	for written := 0; written < rows.Len(); {
		size := 1 << (bits.Len(uint(min(rows.Len()-written, maxChunk))) - 1)
		count, err := b.insertChunk(b.tx.Statement.Context, statements, rows.Slice(written, written+size))
		if err != nil {
			return 0, fmt.Errorf("insert into %s: %w", statements.table.Name, classify(err))
		}
		inserted += count
		written += size
	}
	return inserted, nil
}

func (b *batches) insertChunk(ctx context.Context, statements inserts, rows reflect.Value) (inserted int, err error) {
	values := make([]any, 0, rows.Len()*len(statements.table.Columns))
	for n := range rows.Len() {
		values = statements.table.AppendValues(ctx, values, rows.Index(n))
	}
	result, err := b.connection.ExecContext(ctx, statements.text(rows.Len()), values...)
	if err != nil {
		return 0, err
	}
	count, err := result.RowsAffected()
	return int(count), err
}
