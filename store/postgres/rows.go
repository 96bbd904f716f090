package postgres

import (
	"context"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"example.com/providerd/store/database"
)

// largeRow is the size in bytes from which a row gets a statement of its own, because JSON would take twice the memory.
const largeRow = 16 << 10

// table has the INSERT statements of one model. They leave out rows with a unique value that is taken.
type table struct {
	database.Table
	// members are the column names as JSON object keys, quoted and with the colon.
	members []string
	// insertOne has a parameter per column.
	insertOne string
	// insertMany has one parameter, a JSON array of all rows, so that the server parses and plans it once for any number
	// of rows. The types are those of the table's columns.
	insertMany string
}

// newTable returns the table of the model of a []*Row.
func newTable(tx *gorm.DB, rows any) (table, error) {
	model, err := database.TableOf(tx, rows)
	if err != nil {
		return table{}, err
	}
	t := table{Table: model}
	var columns, parameters []string
	for n, name := range model.Columns {
		t.members = append(t.members, strconv.Quote(name)+":")
		columns = append(columns, pgx.Identifier{name}.Sanitize())
		parameters = append(parameters, "$"+strconv.Itoa(n+1))
	}
	name, list := pgx.Identifier{model.Name}.Sanitize(), strings.Join(columns, ",")
	insert := "INSERT INTO " + name + " (" + list + ") "
	const leaveOut = " ON CONFLICT DO NOTHING"
	t.insertOne = insert + "VALUES (" + strings.Join(parameters, ",") + ")" + leaveOut
	t.insertMany = insert + "SELECT " + list + " FROM json_populate_recordset(NULL::" + name + ", $1::json)" + leaveOut
	return t, nil
}

// queue adds the INSERT statements of rows to a pipeline, in order.
func (t table) queue(
	ctx context.Context, pipeline *pgx.Batch, rows reflect.Value, written func(pgconn.CommandTag) error,
) (err error) {
	var objects []byte
	flush := func() {
		if len(objects) > 0 {
			objects[0] = '['
			pipeline.Queue(t.insertMany, json.RawMessage(append(objects, ']'))).Exec(written)
			objects = nil
		}
	}
	for i := range rows.Len() {
		values := t.AppendValues(ctx, nil, rows.Index(i))
		if rows.Len() == 1 || isLarge(values) {
			flush()
			pipeline.Queue(t.insertOne, values...).Exec(written)
			continue
		}
		if objects, err = t.appendObject(append(objects, ','), values); err != nil {
			return err
		}
	}
	flush()
	return nil
}

func isLarge(values []any) bool {
	size := 0
	for _, value := range values {
		switch value := value.(type) {
		case string:
			size += len(value)
		case []byte:
			size += len(value)
		}
	}
	return size >= largeRow
}

// appendObject appends a row as a JSON object with a member per column.
func (t table) appendObject(text []byte, values []any) (_ []byte, err error) {
	for n, field := range t.Fields {
		text = append(text, "{,"[min(n, 1)])
		text = append(text, t.members[n]...)
		if text, err = appendValue(text, field, values[n]); err != nil {
			return nil, fmt.Errorf("%w: column %s: %w", database.ErrRefused, field.DBName, err)
		}
	}
	return append(text, '}'), nil
}

// appendValue appends a value in the JSON form that its column reads.
func appendValue(text []byte, field *schema.Field, value any) ([]byte, error) {
	if serializer, ok := value.(driver.Valuer); ok && field.Serializer != nil {
		// The serializer returns JSON.
		serialized, err := serializer.Value()
		return fmt.Append(text, serialized), err
	}
	switch value := value.(type) {
	case string:
		return jsontext.AppendQuote(text, value) //nolint:wrapcheck // The caller names the column.
	case []byte:
		if value == nil {
			return append(text, "null"...), nil
		}
		return append(hex.AppendEncode(append(text, `"\\x`...), value), '"'), nil
	case bool:
		return strconv.AppendBool(text, value), nil
	case int32:
		return strconv.AppendInt(text, int64(value), 10), nil
	default:
		member, err := json.Marshal(value)
		return append(text, member...), err
	}
}
