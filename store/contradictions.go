package store

import (
	"context"
	"fmt"
	"iter"
)

// Contradiction is something about a provider that only another program can have written.
type Contradiction struct {
	PK int64
	// Detail says what it is, after the words "provider PK".
	Detail string
}

// contradictions are searches for the pks of providers, and what they find. PostgreSQL would run NOT IN for each row.
func contradictions() []struct{ query, detail string } {
	const created = "SELECT subject FROM events WHERE event = 'provider created'"
	const deleted = "SELECT subject FROM events WHERE event = 'provider deleted'"
	const stored = "SELECT pk FROM providers"
	return []struct{ query, detail string }{
		{stored + " EXCEPT " + created + " ORDER BY 1", "was inserted without an event"},
		{created + " EXCEPT " + deleted + " EXCEPT " + stored + " ORDER BY 1", "was removed without an event"},
		{stored + " INTERSECT " + deleted + " ORDER BY 1", "is stored, although it was deleted"},
		{created + " GROUP BY subject HAVING count(*) > 1 ORDER BY 1", "was created more than once"},
	}
}

// Contradictions returns records that were inserted, removed or stored again without an event. On ErrUnavailable the
// sequence ends.
func (s *Store) Contradictions(ctx context.Context) iter.Seq2[Contradiction, error] {
	return func(yield func(Contradiction, error) bool) {
		for _, search := range contradictions() {
			var pks []int64
			if err := s.reader(ctx).Raw(search.query).Scan(&pks).Error; err != nil {
				yield(Contradiction{}, fmt.Errorf("compare records with events: %w", err))
				return
			}
			for _, pk := range pks {
				if !yield(Contradiction{pk, search.detail}, nil) {
					return
				}
			}
		}
	}
}
