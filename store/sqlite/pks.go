package sqlite

import (
	"fmt"

	"example.com/providerd/store/database"
)

// assignedPKs describes which pks of providers are taken.
type assignedPKs struct {
	// Sequence is the last pk according to sqlite_sequence, which any program may write; 0 if there is none.
	Sequence int64
	Largest  int64
}

// pkColumns selects the fields of assignedPKs. The column seq has no declared type; -1 stands for a value that is not
// an integer and is smaller than any pk.
const pkColumns = `coalesce((
		SELECT iif(typeof(seq) = 'integer', seq, -1) FROM sqlite_sequence WHERE name = 'providers'), 0) AS sequence,
	(SELECT coalesce(max(pk), 0) FROM providers) AS largest`

// last returns the last pk, or 0 if there is none. It returns ErrUnavailable if Sequence cannot be right.
func (a assignedPKs) last() (int64, error) {
	if a.Sequence < a.Largest {
		return 0, fmt.Errorf("%w: the database is corrupt: sqlite_sequence is behind the pk of the last "+
			"provider; restore a backup", database.ErrUnavailable)
	}
	return a.Sequence, nil
}
