package postgres

import (
	"context"
	"time"

	"example.com/providerd/store/database"
)

// SetAbandonTimeout changes how long a commit without a response keeps its connection.
func (d *Database) SetAbandonTimeout(timeout time.Duration) { d.abandonTimeout = timeout }

// Objects returns all objects of the migrated tables.
func (v *View) Objects(ctx context.Context) (database.Objects, error) { return v.objects(ctx, nil) }
