package postgres

import (
	"context"
	"time"

	"example.com/providerd/store/database"
)

// SchemaLevel is that of the last migration.
const SchemaLevel = schemaLevel

// Catalog is the text of catalog.txt.
func Catalog() string { return catalog }

// SetAbandonTimeout changes how long a commit without an answer keeps its connection.
func (d *Database) SetAbandonTimeout(timeout time.Duration) { d.abandonTimeout = timeout }

// Objects are those of the tables that the migrations make.
func (v *View) Objects(ctx context.Context) (database.Objects, error) { return v.objects(ctx, nil) }
