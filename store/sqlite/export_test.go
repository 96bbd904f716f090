package sqlite

import (
	"database/sql"

	"example.com/providerd/store/database"
)

// Inserter returns the connection of Insert, which must have been called.
func (d *Database) Inserter() *sql.Conn { return d.inserter.statements.Conn }

// Abandon releases a database whose files were damaged, as the end of its process would.
func (d *Database) Abandon() {
	if d.inserter != nil {
		_ = d.inserter.close()
	}
	_, _, _ = database.ClosePools(d.readers, d.changes, d.writers), d.files.Close(), d.file.Close()
}
