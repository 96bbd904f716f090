package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// logSize is the number of tables with events.
const logSize = 5

// The tables of LogCursor that have events of providers.
const (
	LogCreates = iota
	LogChanges
)

// LogCursor is a position in the event log: the key of the last row of each table. The zero value is the start.
//
// Unlike the time of an event, its key shows that it was committed late: see Settled.
type LogCursor [logSize]int64

var errLogCursor = errors.New("not a cursor of the event log such as 17.3.1.0.2")

// MarshalText implements encoding.TextMarshaler.
func (c LogCursor) MarshalText() ([]byte, error) {
	return []byte(strings.ReplaceAll(strings.Trim(fmt.Sprint([logSize]int64(c)), "[]"), " ", ".")), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. It returns an error if text is not from MarshalText.
func (c *LogCursor) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), ".")
	if len(parts) != logSize {
		return errLogCursor
	}
	for i, part := range parts {
		key, err := strconv.ParseUint(part, 10, 63)
		if err != nil {
			return errLogCursor
		}
		c[i] = int64(key)
	}
	return nil
}

// LogRow is the position of an event in the log.
type LogRow struct {
	// Table is the index of the table in LogCursor, and Key the key of the row.
	Table int
	Key   int64
}

// logTable is a table whose rows are logged in the order of keys.
type logTable struct {
	name string
	// rows selects the columns of an Event and, as number, the key.
	rows string
}

func logTables() [logSize]logTable {
	return [logSize]logTable{
		LogCreates: {providersTable, "SELECT " + createdColumns + " FROM providers UNION ALL " +
			"SELECT " + createdColumns + " FROM deleted_providers"},
		LogChanges: {changeRow{}.TableName(), "SELECT " + changedColumns + changedTables},
		{"tokens", tokenRows("created_at", EventTokenCreated)},
		{"token_changes", tokenChangeRows},
		{"key_events", keyRows},
	}
}

// LogEnd is an end of the log, up to which no event is committed later.
type LogEnd struct {
	LogCursor
	confirm func(context.Context) error
}

// Confirm returns nil only if the events that were read since Settled, and their leaves, will survive the loss of the
// database server. It returns ErrUnavailable.
func (e LogEnd) Confirm(ctx context.Context) error { return e.confirm(ctx) }

// Settled returns the end of the log. It waits for open transactions. It returns ErrUnavailable.
func (s *Store) Settled(ctx context.Context) (end LogEnd, err error) {
	end.confirm, err = s.database.Settle(ctx, func() error {
		for i, table := range logTables() {
			if end.LogCursor[i], err = s.database.LastKey(s.reader(ctx), table.name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return end, fmt.Errorf("find the end of the event log: %w", err)
	}
	return end, nil
}

// Log returns the events after a cursor, up to another one. Events of the same table are in the order of their keys,
// and the tables are merged by time. Events of providers have leaves. On ErrUnavailable the sequence ends.
func (s *Store) Log(ctx context.Context, after, upTo LogCursor) iter.Seq2[Event, error] {
	var sequences []iter.Seq2[Event, error]
	for table := range logSize {
		sequences = append(sequences, s.logOf(ctx, table, after[table], upTo[table]))
	}
	return merged(sequences)
}

// logOf returns the events of a table with keys above after, up to upTo.
func (s *Store) logOf(ctx context.Context, table int, after, upTo int64) iter.Seq2[Event, error] {
	rows := pages(func(last *eventRow) ([]eventRow, error) {
		if last != nil {
			after = last.Number
		}
		page, err := s.logPage(ctx, logTables()[table].rows, after, upTo)
		if err == nil {
			err = s.addLeaves(ctx, table, page)
		}
		return page, err
	})
	return func(yield func(Event, error) bool) {
		for row, err := range rows {
			row.Row = LogRow{Table: table, Key: row.Number}
			if !yield(row.Event, err) {
				return
			}
		}
	}
}

// logPage returns the first rows with keys above after, up to upTo.
func (s *Store) logPage(ctx context.Context, rows string, after, upTo int64) (page []eventRow, err error) {
	// Without CAST, PostgreSQL refuses a key that no column can have.
	err = s.reader(ctx).Table("("+rows+") AS events").
		Where("number > CAST(? AS bigint) AND number <= CAST(? AS bigint)", after, upTo).
		Order("number").Limit(pageSize).Scan(&page).Error
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return page, nil
}

// The leaf before the next change of each provider of a create, or of each change.
const (
	selectFirstLeaves = `SELECT pk AS number, leaf_before FROM provider_changes
		WHERE id IN (SELECT min(id) FROM provider_changes WHERE pk IN ? AND id > 0 GROUP BY pk)`
	selectNextLeaves = `SELECT changes.id AS number, following.leaf_before FROM provider_changes AS changes
		JOIN provider_changes AS following ON following.id = (SELECT min(id) FROM provider_changes
			WHERE pk = changes.pk AND id > changes.id) WHERE changes.id IN ?`
	selectOwnLeaves = `SELECT id AS number, leaf_before FROM provider_changes WHERE change = 'deleted' AND id IN ?`
)

// addLeaves adds the leaves of records to events of providers: that before the next change or, if there is none, that
// of the record. A deletion has that of the last version.
func (s *Store) addLeaves(ctx context.Context, table int, page []eventRow) error {
	if table > LogChanges || len(page) == 0 {
		return nil
	}
	var pks, keys []int64
	for _, row := range page {
		pks, keys = append(pks, row.ID), append(keys, row.Number)
	}
	// Read before the changes, a record has the last version that they lead to, or a later change is found.
	pks = slices.Compact(slices.Sorted(slices.Values(pks)))
	current, err := s.leavesIn(s.reader(ctx).Where("pk IN ?", pks))
	if err != nil {
		return err
	}
	statements := map[int][]string{LogCreates: {selectFirstLeaves}, LogChanges: {selectNextLeaves, selectOwnLeaves}}
	before := map[int64]Leaf{}
	for _, statement := range statements[table] {
		var rows []struct {
			Number     int64
			LeafBefore []byte
		}
		if err := s.reader(ctx).Raw(statement, keys).Scan(&rows).Error; err != nil {
			return fmt.Errorf("read leaves: %w", err)
		}
		for _, row := range rows {
			before[row.Number] = row.LeafBefore
		}
	}
	for i, row := range page {
		leaf, hasNext := before[row.Number]
		if record := current[row.ID]; !hasNext {
			leaf, page[i].Damaged = record.value, record.damaged
		}
		page[i].Leaf = &leaf
	}
	return nil
}
