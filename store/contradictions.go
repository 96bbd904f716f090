package store

import (
	"context"
	"iter"
	"math"
)

// Contradiction is something about a provider that only another program can have written.
type Contradiction struct {
	PK int64
	// Detail says what it is, after the words "provider PK".
	Detail string
}

// Contradictions returns records that were deleted before, and records and events with keys that their tables never
// generated: those are neither in the log nor under a head. On ErrUnavailable the sequence ends.
func (s *Store) Contradictions(ctx context.Context) iter.Seq2[Contradiction, error] {
	return func(yield func(Contradiction, error) bool) {
		for _, search := range []iter.Seq2[Contradiction, error]{
			s.outOfSequence(ctx, LogCreates, "was inserted"), s.outOfSequence(ctx, LogChanges, "has an event that was inserted"),
			s.storedAfterDeletion(ctx),
		} {
			for found, err := range search {
				if !yield(found, err) || err != nil {
					return
				}
			}
		}
	}
}

func (s *Store) outOfSequence(ctx context.Context, table int, detail string) iter.Seq2[Contradiction, error] {
	return func(yield func(Contradiction, error) bool) {
		name, rows := logTables()[table].name, logTables()[table].rows
		last, err := s.database.LastKey(s.reader(ctx), name)
		if err != nil {
			yield(Contradiction{}, err)
			return
		}
		for _, outside := range [][2]int64{{math.MinInt64, 0}, {last, math.MaxInt64}} {
			for row, err := range s.logRows(ctx, rows, outside[0], outside[1]) {
				if err == nil && row.Number > last {
					// It may have been generated since.
					last, err = s.database.LastKey(s.reader(ctx), name)
				}
				isGenerated := err == nil && row.Number > 0 && row.Number <= last
				if !isGenerated && !yield(Contradiction{row.ID, detail}, err) {
					return
				}
			}
		}
	}
}

func (s *Store) storedAfterDeletion(ctx context.Context) iter.Seq2[Contradiction, error] {
	rows := logTables()[LogChanges].rows + " WHERE changes.change = 'deleted' AND providers.pk IS NOT NULL"
	return func(yield func(Contradiction, error) bool) {
		for row, err := range s.logRows(ctx, rows, math.MinInt64, math.MaxInt64) {
			if !yield(Contradiction{row.ID, "is stored, although it was deleted"}, err) {
				return
			}
		}
	}
}

func (s *Store) logRows(ctx context.Context, rows string, after, upTo int64) iter.Seq2[eventRow, error] {
	return pages(func(last *eventRow) ([]eventRow, error) {
		if last != nil {
			after = last.Number
		}
		return s.logPage(ctx, rows, after, upTo)
	})
}
