package audit

import (
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"gorm.io/gorm"

	"example.com/providerd/store/event"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/records"
	"example.com/providerd/store/rows"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/token"
)

// audited is a kind of record whose state is in the lines of the events about it. Its name is their first word.
type audited struct {
	name, table, key string
	// addDigests adds the digests of the records that a query selects, or why they cannot be read.
	addDigests func(query *gorm.DB, keys *keyset.Loaded, digests map[int64]rows.Row[*string]) error
}

func auditedRecords() []audited {
	return []audited{
		{"provider", records.Table, records.PKColumn, addProviderDigests},
		{"token", "tokens", "id", addTokenDigests},
	}
}

func addProviderDigests(query *gorm.DB, keys *keyset.Loaded, digests map[int64]rows.Row[*string]) error {
	read, err := records.Read(query)
	for _, row := range read {
		digest, err := digestOf(keys, row)
		digests[row.Value.Common().PK] = rows.Row[*string]{Value: digest, Damaged: err}
	}
	return err
}

func addTokenDigests(query *gorm.DB, keys *keyset.Loaded, digests map[int64]rows.Row[*string]) error {
	read, err := token.Read(query)
	for _, row := range read {
		digest := rows.Row[*string]{Damaged: row.Damaged}
		if row.Damaged == nil {
			digest.Value, digest.Damaged = digestOfJSON(keys, "token", row.Value.ID, row.Value)
		}
		digests[row.Value.ID] = digest
	}
	return err
}

// addStates adds the states of the records to the events about them.
func (a audited) addStates(tx *gorm.DB, keys *keyset.Loaded, page []Entry) error {
	var ids []int64
	for _, entry := range page {
		if entry.About() == a.name {
			ids = append(ids, entry.Subject)
		}
	}
	digests := map[int64]rows.Row[*string]{}
	for chunk := range slices.Chunk(ids, recordsAtOnce) {
		if err := a.addDigests(tx.Where(a.key+" IN ?", chunk), keys, digests); err != nil {
			return fmt.Errorf("read %ss: %w", a.name, err)
		}
	}
	for i := range page {
		entry := &page[i]
		if entry.About() != a.name {
			continue
		}
		digest := digests[entry.Subject]
		entry.Damaged, entry.State = digest.Damaged, &State{Digest: digest.Value}
		if digest.Damaged != nil {
			entry.Record = Unreadable
		} else if digest.Value == nil {
			entry.Record = Deleted
		}
	}
	return nil
}

// isCurrent is the condition that no later event has changed or deleted the record that an event is about.
const isCurrent = `NOT EXISTS (SELECT 1 FROM events AS later WHERE later.event IN ('provider updated',
	'provider renamed', 'provider deleted', 'provider linked', 'provider unlinked', 'token renewed', 'token revoked')
	AND later.subject = events.subject AND later.id > events.id AND (later.kind = '') = (events.kind = '')
	AND later.event <> 'provider created')`

// Unlisted returns how many stored records no event from one ID to another is about, or ErrUnavailable.
func (l *Log) Unlisted(ctx context.Context, first, last int64) (total int64, err error) {
	for _, a := range auditedRecords() {
		var count int64
		query := "SELECT count(*) FROM (SELECT " + a.key + " FROM " + a.table + " EXCEPT SELECT subject FROM events " +
			"WHERE event LIKE ? AND id BETWEEN ? AND ?) AS unlisted"
		if err := l.database.Reader().WithContext(ctx).Raw(query, a.name+" %", first, last).Scan(&count).Error; err != nil {
			return 0, fmt.Errorf("count records without events: %w", err)
		}
		total += count
	}
	return total, nil
}

// Contradiction is something about a provider or a token that only another program can have written.
type Contradiction struct {
	// Created is the event that creates the record, of which only Event and Subject are set.
	Created event.Event
	// Detail says what it is, after the name and the key of the record.
	Detail string
}

// Contradictions returns records inserted, removed or stored again without an event. It ends on ErrUnavailable.
func (l *Log) Contradictions(ctx context.Context) iter.Seq2[Contradiction, error] {
	return func(yield func(Contradiction, error) bool) {
		for _, a := range auditedRecords() {
			created := "SELECT subject FROM events WHERE event = '" + a.name + " created'"
			deleted := "SELECT subject FROM events WHERE event = '" + a.name + " deleted'"
			stored := "SELECT " + a.key + " FROM " + a.table
			// PostgreSQL would run NOT IN for each row.
			for _, search := range []struct{ query, detail string }{
				{stored + " EXCEPT " + created + " ORDER BY 1", "was inserted without an event"},
				{created + " EXCEPT " + deleted + " EXCEPT " + stored + " ORDER BY 1", "was removed without an event"},
				{stored + " INTERSECT " + deleted + " ORDER BY 1", "is stored, although it was deleted"},
				{created + " GROUP BY subject HAVING count(*) > 1 ORDER BY 1", "was created more than once"},
			} {
				var ids []int64
				if err := l.database.Reader().WithContext(ctx).Raw(search.query).Scan(&ids).Error; err != nil {
					yield(Contradiction{}, fmt.Errorf("compare records with events: %w", err))
					return
				}
				for _, id := range ids {
					created := event.Event{Event: event.Type(a.name + " created"), Subject: id}
					if !yield(Contradiction{created, search.detail}, nil) {
						return
					}
				}
			}
		}
	}
}

// digestVersion is the version of digests. It changes if the text that they are made of does.
const digestVersion = "v1"

// digestOf returns the digest of a record that was read, or ErrDamaged: a MAC of its columns except those that are NULL
// or have their defaults, and of the secret. Rotating keys, resealing, copying and new columns leave it unchanged.
func digestOf(keys *keyset.Loaded, row rows.Row[records.Record]) (*string, error) {
	if row.Damaged != nil {
		return nil, row.Damaged
	}
	record, err := records.Unseal(keys.Keys, row.Value)
	if err != nil {
		return nil, err
	}
	return digestOfJSON(keys, "provider", record.Common().PK, records.Digested(record))
}

// digestOfJSON returns the MAC of the version and the canonical JSON (RFC 8785) of a record, whose numbers keep their
// digits. It returns ErrDamaged, with the name and the key of the record, if a string is not UTF-8.
func digestOfJSON(keys *keyset.Loaded, name string, key int64, record any) (*string, error) {
	text, err := json.Marshal(record)
	canonical := jsontext.Value(text)
	if err == nil {
		err = canonical.Canonicalize(jsontext.CanonicalizeRawInts(false))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %d: %w", name, key, &rows.DamagedError{Cause: err})
	}
	mac, err := keys.Digest(seal.NewSecret(digestVersion + string(canonical)))
	return new(digestVersion + ":" + base64.StdEncoding.EncodeToString(mac)), err
}
