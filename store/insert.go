package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/records"
)

// inserter inserts creates.
type inserter struct {
	database database.Database
	keys     *keyset.Keys
	columns  []string
	// places are those of the columns of each kind in a row, and createdAt is the place of the time.
	places    map[records.Kind][]int
	createdAt int
	// leastTime is how much time a create must have left when it is inserted; 0 for a database without deadlines.
	leastTime time.Duration
}

// maxLocked is how long a create of a split batch is tried again because it waits for another transaction, such as the
// one in which another server stores the same key. It is short because the creates behind it wait too.
const maxLocked = 500 * time.Millisecond

func newInserter(db database.Database, keys *keyset.Keys) inserter {
	i := inserter{database: db, keys: keys}
	places := func(record records.Record) (places []int) {
		for _, column := range records.Settings(record, record.Common().Columns()) {
			if !slices.Contains(i.columns, column.Name) {
				i.columns = append(i.columns, column.Name)
			}
			places = append(places, slices.Index(i.columns, column.Name))
		}
		return places
	}
	i.places = map[records.Kind][]int{
		records.KindOAuth2:             places(records.OAuth2Provider{}),
		records.KindWorkspaceDirectory: places(records.WorkspaceDirectoryProvider{}),
	}
	i.createdAt = slices.Index(i.columns, records.CreatedAtColumn)
	return i
}

// seal seals the secret of a create and makes its row.
func (i inserter) seal(ctx context.Context, c *create) error {
	keys, err := i.keys.Fresh(ctx)
	if err != nil {
		return err
	}
	return i.sealWith(c, keys)
}

func (i inserter) sealWith(c *create, keys *keyset.Loaded) (err error) {
	if c.common.Sealed, err = records.Seal(keys.Keys, c.requested, *c.common); err != nil {
		return err
	}
	columns := records.Settings(c.requested, c.common.Columns())
	if err := records.CheckTexts(columns); err != nil {
		return err
	}
	c.version, c.row = keys.Version, make([]any, len(i.columns))
	for n, place := range i.places[c.common.Kind] {
		c.row[place] = columns[n].Value
	}
	return nil
}

// insertAll inserts creates and sets the outcome of each. What a statement does not store is looked up after its
// commit, so that some order of single creates has the same outcomes. Those that others need not wait for are
// finished early; it returns the last.
func (i inserter) insertAll(creates []*create, finish func(*create)) (last []*create) {
	for try := 0; try < maxTries || slices.ContainsFunc(creates, isLocked); try++ {
		again := i.inTime(creates)
		switch {
		case slices.ContainsFunc(again, isLocked):
			again = i.insertApart(again, 1)
		case len(again) > 0:
			again = i.insertOnce(again, false)
		}
		if len(again) == 0 {
			return creates
		}
		for _, c := range creates {
			if !slices.Contains(again, c) {
				finish(c)
			}
		}
		creates = again
	}
	for _, c := range creates {
		if c.err == nil {
			c.err = fmt.Errorf("%w: other requests keep creating and deleting the same values", ErrUnavailable)
		}
	}
	return creates
}

// insertApart inserts creates in parts of a size, so that only the causes are refused. Those that wait for other
// transactions are tried again after the others. If the server fails, it does so for all.
func (i inserter) insertApart(creates []*create, size int) (again []*create) {
	for {
		if creates = i.inTime(creates); len(creates) == 0 {
			return again
		}
		part := creates[:min(size, len(creates))]
		creates = creates[len(part):]
		left := i.insertOnce(part, true)
		again = append(again, left...)
		hasFailed := func(c *create) bool {
			isFailure := errors.Is(c.err, ErrUnavailable) || errors.Is(c.err, ErrOutcomeUnknown)
			return isFailure && !errors.Is(c.err, database.ErrLocked) && !i.isLate(c) && !slices.Contains(left, c)
		}
		if slices.ContainsFunc(part, hasFailed) {
			fail(creates, fmt.Errorf("%w: an earlier create failed", ErrUnavailable))
			return again
		}
	}
}

// insertOnce inserts creates with one statement and returns the creates that must be inserted again. After an unknown
// outcome they can be, because their uids are unique.
func (i inserter) insertOnce(creates []*create, isApart bool) (again []*create) {
	pks, err := i.statement(creates, isApart)
	switch {
	case errors.Is(err, database.ErrInsertApart) && (!isApart || len(creates) > 1):
		return i.insertApart(creates, (len(creates)+1)/2)
	case errors.Is(err, ErrOutcomeUnknown):
		fail(creates, err)
	case err != nil:
		return i.notStored(creates, isApart, err)
	}
	var left []*create
	for _, c := range creates {
		if pk, ok := pks[c.common.UID]; ok {
			c.common.PK, c.err = pk, nil
		} else {
			left = append(left, c)
		}
	}
	if left = i.inTime(left); len(left) == 0 {
		return nil
	}
	again, err = i.lookUp(left)
	if err == nil {
		return again
	}
	fail(left, err)
	if errors.Is(err, ErrUnavailable) && slices.ContainsFunc(left, i.isLate) {
		// The deadline of a late create ended the lookup of all.
		return left
	}
	return nil
}

// notStored sets the outcome of creates of which a statement has stored none, and returns those that must be tried
// again: those that have not waited long for others, or that the deadline of another one has cut short.
func (i inserter) notStored(creates []*create, isApart bool, err error) (again []*create) {
	fail(creates, err)
	if isApart && errors.Is(err, database.ErrLocked) {
		for _, c := range creates {
			if c.lockedAt.IsZero() {
				c.lockedAt = time.Now()
			}
		}
	}
	if errors.Is(err, ErrUnavailable) && slices.ContainsFunc(creates, i.isLate) {
		return creates
	}
	return slices.DeleteFunc(slices.Clone(creates), func(c *create) bool { return !isLocked(c) })
}

// isLocked reports whether a create of a split batch waits for another transaction, and may wait longer.
func isLocked(c *create) bool {
	return errors.Is(c.err, database.ErrLocked) && time.Since(c.lockedAt) < maxLocked
}

// fail sets the outcome of creates, unless an earlier statement may have stored them.
func fail(creates []*create, err error) {
	for _, c := range creates {
		if !errors.Is(c.err, ErrOutcomeUnknown) {
			c.err = err
		}
	}
}

// statement inserts the rows of creates. They are in the order of their unique values, so that concurrent statements
// rarely deadlock, and get the same time, so that pks and times are in the same order.
func (i inserter) statement(creates []*create, isApart bool) (pks map[uuid.UUID]int64, err error) {
	slices.SortStableFunc(creates, compareCreates)
	at := database.Now()
	// One copy of it serves all rows.
	var createdAt any = at.Time
	insertion := database.Insertion{
		Table: records.Table, Columns: i.columns, Rows: make([][]any, 0, len(creates)), KeysetVersion: creates[0].version,
		IsApart: isApart,
	}
	for _, c := range creates {
		if !bytes.Equal(c.version, insertion.KeysetVersion) {
			// It was sealed before or after a change of the keys, and is tried again.
			continue
		}
		c.common.CreatedAt, c.row[i.createdAt] = at, createdAt
		insertion.Rows = append(insertion.Rows, c.row)
	}
	ctx, cancel := untilDeadline(creates)
	defer cancel()
	return i.database.Insert(ctx, insertion)
}

func compareCreates(a, b *create) int {
	return cmp.Or(
		cmp.Compare(a.common.CreatedBy, b.common.CreatedBy), cmp.Compare(a.common.Kind, b.common.Kind),
		comparePointers(a.common.IdempotencyKey, b.common.IdempotencyKey), comparePointers(a.clientID, b.clientID),
	)
}

// lookUp sets the outcome of creates that were not stored. It returns those that nothing explains, sealed with the
// latest keys: the keys were changed, what they met was deleted, or they got pks that are in use.
func (i inserter) lookUp(creates []*create) (again []*create, err error) {
	ctx, cancel := untilDeadline(creates)
	defer cancel()
	var keys *keyset.Loaded
	var found []met
	err = i.database.Read(ctx, func(tx *gorm.DB) (err error) {
		if keys, err = i.keys.Latest(tx); err == nil {
			found, err = findMet(tx, creates)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find conflicting records: %w", err)
	}
	isExplained := true
	for _, c := range creates {
		if outcome(c, found) {
			continue
		}
		isExplained = isExplained && !bytes.Equal(c.version, keys.Version)
		if err := i.sealWith(c, keys); err != nil {
			fail([]*create{c}, err)
			continue
		}
		again = append(again, c)
	}
	if isExplained {
		return again, nil
	}
	if err := i.database.Prepare(ctx); err != nil {
		fail(again, err)
		return nil, nil
	}
	return again, nil
}
