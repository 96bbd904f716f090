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

// largeRow is from how many bytes on a row is inserted by a statement of its own. JSON would take twice the memory.
const largeRow = 16 << 10

// table is what rows of one model are inserted with. Rows of which a unique value is taken are left out.
type table struct {
	database.Table
	// members are the names of the columns, as they begin the members of an object in JSON.
	members []string
	// insertOne has a parameter for each column.
	insertOne string
	// insertMany has one parameter for all rows, as JSON, so that any number of them makes the same statement, which the
	// server parses and plans once. The types are those of the table's columns.
	insertMany string
}

// newTable reads the model of a []*Row.
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

// queue adds the INSERTs of some rows to a pipeline, in their order.
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

// appendObject adds a row as an object, whose members are the columns.
func (t table) appendObject(text []byte, values []any) (_ []byte, err error) {
	for n, field := range t.Fields {
		text = append(text, "{,"[min(n, 1)])
		text = append(text, t.members[n]...)
		if text, err = appendValue(text, field, values[n]); err != nil {
			return nil, fmt.Errorf("write column %s: %w", field.DBName, err)
		}
	}
	return append(text, '}'), nil
}

// appendValue adds a value in the form in which its column reads it from JSON.
func appendValue(text []byte, field *schema.Field, value any) ([]byte, error) {
	if serializer, ok := value.(driver.Valuer); ok && field.Serializer != nil {
		// It makes JSON of the value.
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
