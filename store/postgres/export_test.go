package postgres

import (
	"context"

	"example.com/providerd/store/database"
)

// SchemaLevel is that of the last migration.
const SchemaLevel = schemaLevel

// Catalog is the text of catalog.txt.
func Catalog() string { return catalog }

// Objects are those of the tables that the migrations make.
func (v *View) Objects(ctx context.Context) (database.Objects, error) { return v.objects(ctx, nil) }
