package sqlite

import (
	"fmt"

	"example.com/providerd/store/database"
)

// assignedPKs are the pks of providers that were given.
type assignedPKs struct {
	// Sequence is the last one as SQLite has noted it, 0 before the first, in a table that any program may write.
	Sequence int64
	Largest  int64
}

// pkColumns selects the fields of assignedPKs. The column seq has no type: what is not an integer is less than any pk.
const pkColumns = `coalesce((
		SELECT iif(typeof(seq) = 'integer', seq, -1) FROM sqlite_sequence WHERE name = 'providers'), 0) AS sequence,
	(SELECT coalesce(max(pk), 0) FROM providers) AS largest`

// last returns 0 before the first pk. It returns ErrUnavailable for what cannot be the last one.
func (g assignedPKs) last() (int64, error) {
	if g.Sequence < g.Largest {
		return 0, fmt.Errorf("%w: the database is corrupt: sqlite_sequence is behind the pk of the last "+
			"provider; restore a backup", database.ErrUnavailable)
	}
	return g.Sequence, nil
}
