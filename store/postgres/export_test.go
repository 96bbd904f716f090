package postgres

import (
	"context"
	"time"

	"example.com/providerd/store/database"
)

// LatestVersion is the version of the last migration.
const LatestVersion = schemaVersion

// Catalog is the text of catalog.txt.
func Catalog() string { return catalog }

// SetAbandonTimeout changes how long a commit without an answer keeps its connection.
func (d *Database) SetAbandonTimeout(timeout time.Duration) { d.abandonTimeout = timeout }

// Objects are those of the tables that the migrations make.
func (v *View) Objects(ctx context.Context) (database.Objects, error) { return v.objects(ctx, nil) }
