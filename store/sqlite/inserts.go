package sqlite

import (
	"context"
	"fmt"
	"math/bits"
	"reflect"
	"strings"

	"example.com/providerd/store/database"
)

// maxChunk is how many rows an INSERT writes at most.
const maxChunk = 64

// inserts write rows of one table, powers of two of them at a time: there are few, and each is a prepared statement of
// its own. Rows of which a unique value is taken are left out.
type inserts struct {
	table database.Table
	// texts are the statements by the number of their rows.
	texts map[int]string
}

// text returns the statement for some rows. Only for OR IGNORE SQLite keeps no journal for a statement of many rows,
// because no constraint can abort it; it also leaves out rows that break another constraint than UNIQUE.
func (i inserts) text(rows int) string {
	text, ok := i.texts[rows]
	if !ok {
		row := ",(?" + strings.Repeat(",?", len(i.table.Columns)-1) + ")"
		text = fmt.Sprintf("INSERT OR IGNORE INTO `%s` (`%s`) VALUES %s",
			i.table.Name, strings.Join(i.table.Columns, "`,`"), strings.Repeat(row, rows)[1:])
		i.texts[rows] = text
	}
	return text
}

// Insert writes each list.
func (b *batches) Insert(lists ...any) (left []int, err error) {
	if !b.hasRows {
		if err := raiseGeneration(b.database.files, b.tx); err != nil {
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
		left = append(left, rows.Len()-inserted)
	}
	return left, nil
}

// insert writes the rows of one list, and returns how many are in.
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
		statements = inserts{table: table, texts: map[int]string{}}
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
