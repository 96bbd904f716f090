package transfer

import (
	"context"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// PageRows is the maximum number of rows in a page.
const PageRows = pageRows

// Columns returns the columns of each table that is copied.
func Columns() map[string][]string {
	columns := map[string][]string{}
	for _, table := range tables() {
		columns[table.name] = table.columnNames()
	}
	return columns
}

// Contents returns what each table of a database holds.
func Contents(ctx context.Context, db database.Movable) (contents []Content, err error) {
	err = db.Snapshot(ctx, func(tx *gorm.DB) error {
		for _, table := range tables() {
			content, err := table.content(tx, func(page) error { return nil })
			if err != nil {
				return err
			}
			contents = append(contents, content)
		}
		return nil
	})
	return contents, err
}
