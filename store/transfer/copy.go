// Package transfer copies the contents of one database into another, of either kind, and compares the two. It knows
// tables and columns, but not providers or keys: secrets are copied as they are sealed.
//
// Start with Copy. tables.go lists what is copied, and values.go defines the form in which values are compared.
package transfer

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

var (
	// ErrNotEmpty means that the target database already has contents.
	ErrNotEmpty = errors.New("target database is not empty")
	// ErrDiffers means that a table of the copy differs from the source.
	ErrDiffers = errors.New("copy differs from the source")
)

// Step is a part of a copy.
type Step string

// The steps of a copy, in order.
const (
	StepCopy    Step = "copied"
	StepCompare Step = "compared"
)

// Progress is called with the number of rows that a step has done and the total.
type Progress func(step Step, done, total int64)

// Copy copies a snapshot of one database into an empty one, compares the two, and returns what each table holds. An
// interrupted copy stays marked as incomplete, so that only another call to Copy uses it. That call resumes the copy:
// it does not send again what the target already has.
//
// At most a few pages, each of 4,000 rows or 4 MiB plus one row, are in memory at a time.
//
// Wrap makes the keyset of the copy from that of the source, and ended is called in the last transaction.
//
// It returns the error of wrap, ErrNotEmpty, ErrDiffers, database.ErrCopyIncomplete if the source is itself an
// unfinished copy, ErrUnavailable or ErrOutcomeUnknown. After an error other than ErrNotEmpty and ErrCopyIncomplete,
// another call may succeed.
func Copy(
	ctx context.Context, from, to database.Movable, wrap func(Keyset) (Keyset, error), ended func(tx *gorm.DB) error,
	progress Progress,
) (contents []Content, err error) {
	err = from.Snapshot(ctx, func(source *gorm.DB) error {
		c := copying{source: source, ended: ended, target: target{to}, progress: progress}
		if err := c.run(ctx, wrap); err != nil {
			return err
		}
		contents = c.contents
		return nil
	})
	return contents, err
}

// copying is one call of Copy.
type copying struct {
	// source is the snapshot.
	source      *gorm.DB
	target      target
	progress    Progress
	step        Step
	done, total int64
	// contents are what the tables of the source hold.
	contents []Content
	// ended is called in the last transaction.
	ended func(tx *gorm.DB) error
}

func (c *copying) run(ctx context.Context, wrap func(Keyset) (Keyset, error)) error {
	source, ok, err := readKeyset(c.source)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: its creation was not finished", database.ErrOlder)
	}
	if source.isMark() {
		return database.ErrCopyIncomplete
	}
	keyset, err := wrap(source)
	if err != nil {
		return err
	}
	if err := c.count(); err != nil {
		return err
	}
	if err := c.target.claim(ctx, source); err != nil {
		return err
	}
	c.begin(StepCopy)
	for _, table := range tables() {
		content, err := c.table(ctx, table)
		if err != nil {
			return err
		}
		c.contents = append(c.contents, content)
	}
	c.begin(StepCompare)
	if err := c.target.Snapshot(ctx, c.compare); err != nil {
		return err
	}
	last, err := c.lastKeys()
	if err != nil {
		return err
	}
	return c.target.finish(ctx, keyset, last, c.ended)
}

func (c *copying) count() error {
	for _, table := range tables() {
		var count int64
		if err := c.source.Table(table.name).Count(&count).Error; err != nil {
			return fmt.Errorf("count the rows of %s: %w", table.name, err)
		}
		c.total += count
	}
	return nil
}

func (c *copying) begin(step Step) {
	c.step, c.done = step, 0
	c.progress(step, 0, c.total)
}

func (c *copying) advance(p page) {
	c.done += int64(len(p.rows))
	c.progress(c.step, c.done, c.total)
}

// table copies a table, except for pages that the target already has.
func (c *copying) table(ctx context.Context, t table) (Content, error) {
	last, err := t.last(c.target.Reader().WithContext(ctx))
	if err != nil {
		return Content{}, err
	}
	after := int64(0)
	content, err := t.content(c.source, func(p page) error {
		isCopied := false
		if after < last {
			var err error
			if isCopied, err = c.target.has(ctx, t, after, p); err != nil {
				return err
			}
		}
		if !isCopied {
			if err := c.target.replace(ctx, t, after, p); err != nil {
				return err
			}
		}
		after = p.last
		c.advance(p)
		return nil
	})
	if err != nil || last <= after {
		return content, err
	}
	// The source has lost its last rows since the copy was interrupted.
	return content, c.target.replace(ctx, t, after, page{last: last})
}

// last returns the highest key of a table, or 0.
func (t table) last(tx *gorm.DB) (last int64, err error) {
	err = tx.Raw(fmt.Sprintf("SELECT coalesce(max(%s), 0) FROM %s", t.key(), t.name)).Scan(&last).Error
	if err != nil {
		return 0, fmt.Errorf("find rows in %s: %w", t.name, err)
	}
	return last, nil
}

// compare reads the whole copy and compares each table with the source.
func (c *copying) compare(tx *gorm.DB) error {
	for i, t := range tables() {
		content, err := t.content(tx, func(p page) error {
			c.advance(p)
			return nil
		})
		if err != nil {
			return err
		}
		if content != c.contents[i] {
			return differs(t)
		}
	}
	return nil
}

func differs(t table) error { return fmt.Errorf("%w in table %s; copy again", ErrDiffers, t.name) }

// lastKeys returns the highest key of each table of the source. That of a deleted provider is in its events.
func (c *copying) lastKeys() (map[string]int64, error) {
	keys := map[string]int64{}
	for _, table := range tables() {
		if !table.generatesKeys {
			continue
		}
		last, err := table.last(c.source)
		if err != nil {
			return nil, err
		}
		keys[table.name] = last
	}
	var deleted int64
	const selectDeleted = "SELECT coalesce(max(subject), 0) FROM events WHERE event = 'provider deleted'"
	err := c.source.Raw(selectDeleted).Scan(&deleted).Error
	if err != nil {
		return nil, fmt.Errorf("find deleted providers: %w", err)
	}
	keys["providers"] = max(keys["providers"], deleted)
	return keys, nil
}
