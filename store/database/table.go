package database

import (
	"context"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// Table is what a database writes the rows of one GORM model with, by statements of its own: GORM builds each statement
// again, which takes longer than SQLite's part of it.
type Table struct {
	Name    string
	Columns []string
	// Fields are those of the model, in the order of the columns.
	Fields []*schema.Field
}

// TableOf reads the model of rows, which are a []*Row. It returns GORM's error where Row is no model.
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

// AppendValues appends the values of a row, a *Row, in the order of the columns.
func (t Table) AppendValues(ctx context.Context, values []any, row reflect.Value) []any {
	for _, field := range t.Fields {
		value, _ := field.ValueOf(ctx, row)
		values = append(values, value)
	}
	return values
}
