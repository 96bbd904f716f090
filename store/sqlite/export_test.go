package sqlite

import (
	"os"

	"example.com/providerd/store/database"
)

// Classify is what the errors of statements go through.
func Classify(err error) error { return classify(err) }

// CommitError is Classify for the error of a COMMIT.
func CommitError(err error) error { return commitError(err) }

// ErrTorn says that a wal-index was being written.
var ErrTorn = errTorn

// WALIndex is what a wal-index says of its WAL.
type WALIndex struct{ walIndex }

// ReadWALIndex reads the header of a wal-index.
func ReadWALIndex(file *os.File) (WALIndex, error) {
	index, err := readWALIndex(file, make([]byte, walIndexSize))
	return WALIndex{index}, err
}

// PageSize is that of the database, in bytes.
func (i WALIndex) PageSize() int64 { return i.pageSize }

// Frames is the number of the last frame that belongs to a commit.
func (i WALIndex) Frames() uint32 { return i.frames }

// Backfilled is how many frames a checkpoint has copied.
func (i WALIndex) Backfilled() uint32 { return i.backfilled }

// Salts are those of the WAL.
func (i WALIndex) Salts() [8]byte { return i.salts }

// IsWALOf tells whether a file is the WAL that the index is of.
func (i WALIndex) IsWALOf(wal *os.File) (bool, error) {
	return i.isWALOf(wal, make([]byte, walIndexSize))
}

// Abandon releases a database whose files were harmed, as the end of its process does.
func (d *Database) Abandon() {
	_, _, _ = database.ClosePools(d.readers, d.writers), d.files.close(), d.file.Close()
}
