package sqlite

import (
	"example.com/providerd/store/database"
)

// Classify is classify.
func Classify(err error) error { return classify(err) }

// CommitError is commitError.
func CommitError(err error) error { return commitError(err) }

// Abandon releases a database whose files were damaged, as the end of its process would.
func (d *Database) Abandon() {
	_, _, _ = database.ClosePools(d.readers, d.writers), d.files.Close(), d.file.Close()
}
