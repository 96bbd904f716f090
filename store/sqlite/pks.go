package sqlite

import (
	"fmt"

	"example.com/providerd/store/database"
)

// givenPKs are the pks of providers that were given.
type givenPKs struct {
	// noted is the last one as SQLite has noted it, in a table without types that any program may write.
	noted   any
	largest int64
}

// pkColumns selects the fields of givenPKs.
const pkColumns = `(SELECT seq FROM sqlite_sequence WHERE name = 'providers'),
	(SELECT coalesce(max(pk), 0) FROM providers)`

// last returns 0 before the first pk. It returns ErrUnavailable for what cannot be the last one.
func (g givenPKs) last() (int64, error) {
	if g.noted == nil && g.largest == 0 {
		return 0, nil
	}
	last, isInteger := g.noted.(int64)
	if !isInteger || last < g.largest {
		return 0, fmt.Errorf("%w: it is damaged: sqlite_sequence does not have the pk of the last provider; "+
			"go back to a backup", database.ErrUnavailable)
	}
	return last, nil
}
