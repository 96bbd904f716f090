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

const (
	// maxBlocked is how long a create of a split batch is tried again because it waits for another transaction, such as
	// the one in which another server stores the same key. It is short because the creates behind it wait too.
	maxBlocked = 500 * time.Millisecond
	// leastTime is enough for an insert over the network, including its commit.
	leastTime = 1500 * time.Millisecond
)

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
func (i inserter) seal(c *create, keys *keyset.Loaded) (err error) {
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

// insertAll inserts creates and settles each. What a statement does not store is looked up after its commit, so that
// some order of single creates has the same outcomes. Those that others need not wait for are finished early; it
// returns the last.
func (i inserter) insertAll(creates []*create, finish func(*create)) (last []*create) {
	for try := 0; try < maxTries || slices.ContainsFunc(creates, isBlocked); try++ {
		i.insertOnce(creates)
		again := i.unsettled(creates)
		if len(again) == 0 {
			return creates
		}
		for _, c := range creates {
			if isSettled(c) {
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

// insertOnce inserts creates with one statement, or one by one if some are blocked. What must be inserted apart is
// halved, so that only the causes are refused. If the server fails, it does so for all. Creates that stay unsettled
// must be inserted again.
func (i inserter) insertOnce(creates []*create) {
	parts, isApart := [][]*create{creates}, slices.ContainsFunc(creates, isBlocked)
	if isApart {
		parts = slices.Collect(slices.Chunk(creates, 1))
	}
	for len(parts) > 0 {
		part := i.unsettled(parts[0])
		parts = parts[1:]
		err := i.insertPart(part, isApart)
		if errors.Is(err, database.ErrInsertApart) && (!isApart || len(part) > 1) {
			half := (len(part) + 1) / 2
			parts, isApart = slices.Insert(parts, 0, part[:half], part[half:]), true
		} else if err != nil && i.notStored(part, isApart, err) {
			for _, c := range slices.Concat(parts...) {
				c.fail(fmt.Errorf("%w: an earlier create failed", ErrUnavailable))
			}
			return
		}
	}
}

// insertPart inserts creates with one statement, and settles them unless it returns an error. After an unknown outcome
// they can be inserted again, because their uids are unique.
func (i inserter) insertPart(creates []*create, isApart bool) error {
	if len(creates) == 0 {
		return nil
	}
	pks, err := i.statement(creates, isApart)
	if err != nil && !errors.Is(err, ErrOutcomeUnknown) {
		return err
	}
	for _, c := range creates {
		if pk, ok := pks[c.common.UID]; ok {
			c.common.PK, c.err, c.state = pk, nil, settled
		} else {
			c.err, c.state = cmp.Or(err, c.err), waiting
		}
	}
	if left := i.unsettled(creates); len(left) > 0 {
		return i.lookUp(left)
	}
	return nil
}

// notStored settles the creates that an error has left, except those that have not been blocked for long, and those
// that the deadline of another one has cut short. It reports whether the server has failed, and would do so for others.
func (i inserter) notStored(creates []*create, isApart bool, err error) (hasFailed bool) {
	left := slices.DeleteFunc(slices.Clone(creates), isSettled)
	isLocked, isCutShort := errors.Is(err, database.ErrLocked), slices.ContainsFunc(left, i.isLate)
	hasFailed = errors.Is(err, ErrUnavailable)
	for _, c := range left {
		c.fail(err)
		if isLocked && isApart && c.blockedAt.IsZero() {
			c.blockedAt = time.Now()
		}
		if isLocked && time.Since(c.blockedAt) < maxBlocked {
			c.state = blocked
		} else if hasFailed && isCutShort {
			c.state = waiting
		}
	}
	return hasFailed && !isLocked && !isCutShort
}

// isLate reports whether too little time is left to insert a create.
func (i inserter) isLate(c *create) bool {
	return !c.deadline.IsZero() && time.Until(c.deadline) < i.leastTime
}

// unsettled returns the creates that have no outcome yet. It refuses those that are late, so that a deadline does not
// cut a statement short and the creates behind do not wait. The error of an earlier statement, which says more, stays.
func (i inserter) unsettled(creates []*create) []*create {
	for _, c := range creates {
		if !isSettled(c) && i.isLate(c) {
			c.fail(cmp.Or(c.err, fmt.Errorf("%w: no time left for a transaction", ErrUnavailable)))
		}
	}
	if !slices.ContainsFunc(creates, isSettled) {
		return creates
	}
	return slices.DeleteFunc(slices.Clone(creates), isSettled)
}

// untilDeadline returns a context that ends at the earliest deadline.
func untilDeadline(creates []*create) (context.Context, context.CancelFunc) {
	var first time.Time
	for _, c := range creates {
		if !c.deadline.IsZero() && (first.IsZero() || c.deadline.Before(first)) {
			first = c.deadline
		}
	}
	if first.IsZero() {
		return context.Background(), func() {}
	}
	return context.WithDeadline(context.Background(), first)
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
		cmp.Compare(text(a.common.IdempotencyKey), text(b.common.IdempotencyKey)),
		cmp.Compare(text(a.clientID), text(b.clientID)),
	)
}

// lookUp settles creates that were not stored, except those that nothing explains, which it seals with the latest keys:
// the keys were changed, what they met was deleted, or they got pks that are in use.
func (i inserter) lookUp(creates []*create) error {
	ctx, cancel := untilDeadline(creates)
	defer cancel()
	var keys *keyset.Loaded
	var found []records.OAuth2Provider
	err := i.database.Read(ctx, func(tx *gorm.DB) (err error) {
		if keys, err = i.keys.Latest(tx); err == nil {
			found, err = findMet(tx, creates)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("find conflicting records: %w", err)
	}
	isExplained := true
	for _, c := range creates {
		if c.settle(found); isSettled(c) {
			continue
		}
		isExplained = isExplained && !bytes.Equal(c.version, keys.Version)
		if err := i.seal(c, keys); err != nil {
			c.fail(err)
		}
	}
	if isExplained {
		return nil
	}
	return i.database.Prepare(ctx)
}
