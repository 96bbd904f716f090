package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"gorm.io/gorm"
)

// The first words of events of providers and tokens.
const aboutProvider, aboutToken = "provider", "token"

// About returns "provider" or "token", whichever the subject is, or "" for other events.
func (e Event) About() string {
	if word, _, _ := strings.Cut(string(e.Event), " "); word == aboutProvider || word == aboutToken {
		return word
	}
	return ""
}

// audited is a kind of record whose state is in the lines of its events. Its name is their first word.
type audited struct {
	name, table, key string
	// changes are the events that change or delete a record.
	changes []EventKind
	// addDigests adds the digests of the records that a query selects, or why they cannot be read.
	addDigests func(query *gorm.DB, keys *loadedKeys, digests map[int64]readable[string]) error
}

func auditedRecords() []audited {
	return []audited{
		{aboutProvider, providersTable, pkColumn, []EventKind{
			EventProviderUpdated, EventProviderRenamed, EventProviderDeleted, EventProviderLinked, EventProviderUnlinked,
		}, addProviderDigests},
		{aboutToken, "tokens", "id", []EventKind{EventTokenRenewed, EventTokenRevoked}, addTokenDigests},
	}
}

func addProviderDigests(query *gorm.DB, keys *loadedKeys, digests map[int64]readable[string]) error {
	rows, err := recordsIn(query)
	for _, row := range rows {
		digest, err := digestOf(keys, row)
		digests[row.value.Common().PK] = readable[string]{digest, err}
	}
	return err
}

func addTokenDigests(query *gorm.DB, keys *loadedKeys, digests map[int64]readable[string]) error {
	rows, err := readTokens(query)
	for _, row := range rows {
		digest, err := digestOfToken(keys, row)
		digests[row.value.ID] = readable[string]{digest, err}
	}
	return err
}

// addStates adds the states of the records to the events about them.
func (a audited) addStates(tx *gorm.DB, keys *loadedKeys, page []LogEntry) error {
	// recordsAtOnce is the number of records in memory.
	const recordsAtOnce = 25
	entries := map[int64][]*LogEntry{}
	var ids []int64
	for i, entry := range page {
		if entry.About() == a.name {
			ids = append(ids, entry.Subject)
			entries[entry.Subject] = append(entries[entry.Subject], &page[i])
		}
	}
	if len(ids) == 0 {
		return nil
	}
	last, err := a.lastChanges(tx, ids)
	if err != nil {
		return err
	}
	digests := map[int64]readable[string]{}
	for chunk := range slices.Chunk(ids, recordsAtOnce) {
		if err := a.addDigests(tx.Where(a.key+" IN ?", chunk), keys, digests); err != nil {
			return fmt.Errorf("read %ss: %w", a.name, err)
		}
	}
	for id, about := range entries {
		state := &RecordState{Record: RecordDeleted}
		digest, isStored := digests[id]
		switch {
		case digest.damaged != nil:
			state.Record = RecordUnreadable
		case isStored:
			state.Record, state.Digest = "", &digest.value
		}
		for _, entry := range about {
			entry.RecordState, entry.Damaged, entry.IsCurrent = state, digest.damaged, entry.ID >= last[id]
		}
	}
	return nil
}

// lastChanges returns the last events that have changed or deleted records.
func (a audited) lastChanges(tx *gorm.DB, ids []int64) (map[int64]int64, error) {
	var rows []struct{ Subject, Last int64 }
	err := tx.Model(&Event{}).Select("subject, max(id) AS last").
		Where("event IN ? AND subject IN ? AND "+isIndexed, a.changes, ids).Group("subject").Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("find changes: %w", err)
	}
	last := map[int64]int64{}
	for _, row := range rows {
		last[row.Subject] = row.Last
	}
	return last, nil
}

// Unlisted returns the number of stored records that no event from one ID to another is about. It returns
// ErrUnavailable.
func (s *Store) Unlisted(ctx context.Context, first, last int64) (count int64, err error) {
	for _, a := range auditedRecords() {
		var of int64
		query := "SELECT count(*) FROM (SELECT " + a.key + " FROM " + a.table +
			" EXCEPT SELECT subject FROM events WHERE event LIKE ? AND id BETWEEN ? AND ?) AS unlisted"
		if err := s.reader(ctx).Raw(query, a.name+" %", first, last).Scan(&of).Error; err != nil {
			return 0, fmt.Errorf("count %ss without events: %w", a.name, err)
		}
		count += of
	}
	return count, nil
}

// Contradiction is something about a provider or a token that only another program can have written.
type Contradiction struct {
	// Created is the event that creates the record, of which only Event and Subject are set.
	Created Event
	// Detail says what it is, after the name and the key of the record.
	Detail string
}

// contradictions are searches for the keys of records, and what they find. PostgreSQL would run NOT IN for each row.
func (a audited) contradictions() []struct{ query, detail string } {
	created := "SELECT subject FROM events WHERE event = '" + a.name + " created'"
	deleted := "SELECT subject FROM events WHERE event = '" + a.name + " deleted'"
	stored := "SELECT " + a.key + " FROM " + a.table
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
		for _, a := range auditedRecords() {
			for _, search := range a.contradictions() {
				var ids []int64
				if err := s.reader(ctx).Raw(search.query).Scan(&ids).Error; err != nil {
					yield(Contradiction{}, fmt.Errorf("compare records with events: %w", err))
					return
				}
				for _, id := range ids {
					created := Event{Event: EventKind(a.name + " created"), Subject: id}
					if !yield(Contradiction{created, search.detail}, nil) {
						return
					}
				}
			}
		}
	}
}
