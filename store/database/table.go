package database

import (
	"context"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// Table describes a GORM model to a database that inserts its rows with its own statements: GORM builds each statement
// anew, which takes longer than SQLite needs to run it.
type Table struct {
	Name    string
	Columns []string
	// Fields are the fields of the model, in the order of Columns.
	Fields []*schema.Field
}

// TableOf returns the table of rows, a []*Row. It returns GORM's error if Row is not a model.
func TableOf(db *gorm.DB, rows any) (Table, error) {
	model := gorm.Statement{DB: db}
	if err := model.Parse(rows); err != nil {
		return Table{}, fmt.Errorf("read the model: %w", err)
	}
	table := Table{Name: model.Schema.Table, Columns: model.Schema.DBNames}
	for _, name := range model.Schema.DBNames {
		table.Fields = append(table.Fields, model.Schema.FieldsByDBName[name])
	}
	return table, nil
}

// AppendValues appends the values of row, a *Row, in the order of Columns.
func (t Table) AppendValues(ctx context.Context, values []any, row reflect.Value) []any {
	for _, field := range t.Fields {
		value, _ := field.ValueOf(ctx, row)
		values = append(values, value)
	}
	return values
}
