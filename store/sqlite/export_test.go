package sqlite

import (
	"example.com/providerd/store/database"
)

// Classify is what the errors of statements go through.
func Classify(err error) error { return classify(err) }

// CommitError is Classify for the error of a COMMIT.
func CommitError(err error) error { return commitError(err) }

// Abandon releases a database whose files were harmed, as the end of its process does.
func (d *Database) Abandon() {
	_, _, _ = database.ClosePools(d.readers, d.writers), d.files.Close(), d.file.Close()
}
