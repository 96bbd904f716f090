package sqlite

import (
	"context"
	"database/sql"

	"example.com/providerd/store/database"
)

// Classify is classify.
func Classify(err error) error { return classify(err) }

// CommitError is commitError.
func CommitError(err error) error { return commitError(err) }

// Inserter returns the connection of Insert, which must have been called.
func (d *Database) Inserter() *sql.Conn { return d.inserter.statements.conn }

// Checkpoint runs a checkpoint as Insert does. None may be in progress.
func (d *Database) Checkpoint(ctx context.Context) { d.inserter.checkpoints.complete(ctx) }

// Abandon releases a database whose files were damaged, as the end of its process would.
func (d *Database) Abandon() {
	if d.inserter != nil {
		_ = d.inserter.close()
	}
	_, _, _ = database.ClosePools(d.readers, d.writers), d.files.close(), d.file.Close()
}
