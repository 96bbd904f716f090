// Package copies copies one database into another, which can be of another kind.
//
// Start with Copy.
package copies

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/providerd/store/database"
	"example.com/providerd/store/event"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/records"
	"example.com/providerd/store/token"
)

var (
	// ErrNotEmpty means that the target of a copy has contents.
	ErrNotEmpty = errors.New("target database is not empty")
	// ErrSourceChanged means that events were added to the source of a copy before the copy ended.
	ErrSourceChanged = errors.New("source was changed while it was copied")
	// ErrDiffers means that a table of a copy differs from the source.
	ErrDiffers = errors.New("copy differs from the source")
)

// Content is what a table holds.
type Content struct {
	Table string
	Rows  int64
	// Digest is the SHA-256 of the values in hexadecimal, the same in every database.
	Digest string
}

// Copy copies a snapshot of one database into an empty one, in one transaction, compares the two, and returns what each
// table holds. It calls copied and compared with the number of rows so far, and their total. Secrets stay sealed:
// the copy has the data keys of the source, which the primary master key in the file at keysetPath encrypts for it.
// The last event of the copy is that it was copied. The source may change only if isLive is set.
//
// It returns seal.ErrNoKeyset or ErrKeysetUnusable, ErrNotEmpty, ErrSourceChanged, ErrDiffers, database.ErrOlder,
// ErrUnavailable or ErrOutcomeUnknown. If it returns any error except ErrOutcomeUnknown, nothing was stored.
func Copy(
	ctx context.Context, from, to database.Database, keysetPath string, isLive bool,
	copied, compared func(done, total int64),
) (contents []Content, err error) {
	err = from.Snapshot(ctx, func(source *gorm.DB) error {
		row, err := keyset.CopyOf(source, keysetPath)
		if err != nil {
			return err
		}
		total, err := countCopied(source)
		if err != nil {
			return err
		}
		return to.Load(ctx, func(target *gorm.DB) error {
			if err := checkEmpty(target); err != nil {
				return err
			}
			into := &copying{source: source, target: target, progress: func(done int64) { copied(done, total) }}
			if contents, err = into.run(); err != nil {
				return err
			}
			back := &copying{source: target, progress: func(done int64) { compared(done, total) }}
			found, err := back.run()
			if err != nil {
				return err
			}
			for i, content := range contents {
				if content != found[i] {
					return fmt.Errorf("%w in table %s; copy again", ErrDiffers, content.Table)
				}
			}
			if err := finishCopy(target, &row); err != nil {
				return err
			}
			return checkUnchanged(from.Reader().WithContext(ctx), contents, isLive)
		})
	})
	return contents, database.Wrap("copy", err)
}

// copiedTable is a table with its key, and how its rows are copied.
type copiedTable struct {
	name, key string
	copy      func(c *copying) error
}

// copiedTables are the tables except the keyset, each after the tables that it refers to.
func copiedTables() []copiedTable {
	return []copiedTable{
		{records.Table, records.PKColumn, copyProviders},
		{"applications", "id", copyAll[records.Application]},
		{"backchannels", "provider_pk", copyAll[records.Backchannel]},
		{"tokens", "id", copyAll[token.Token]},
		{event.Table, "id", copyEvents},
	}
}

func countCopied(source *gorm.DB) (total int64, err error) {
	for _, table := range copiedTables() {
		var count int64
		if err := source.Table(table.name).Count(&count).Error; err != nil {
			return 0, fmt.Errorf("count the rows of %s: %w", table.name, err)
		}
		total += count
	}
	return total, nil
}

// checkEmpty returns ErrNotEmpty if the target has a row.
func checkEmpty(target *gorm.DB) error {
	if _, err := keyset.Find(target); !errors.Is(err, database.ErrOlder) {
		return errors.Join(fmt.Errorf("%w: it has been set up before; pass an empty database", ErrNotEmpty), err)
	}
	total, err := countCopied(target)
	if total > 0 {
		err = fmt.Errorf("%w: it has %d rows; pass an empty database", ErrNotEmpty, total)
	}
	return err
}

// checkUnchanged returns ErrSourceChanged if the source has more events than were copied, unless isLive is set. The
// last id would not show an event with a lower id that was committed later.
func checkUnchanged(source *gorm.DB, copied []Content, isLive bool) error {
	if isLive {
		return nil
	}
	var count int64
	if err := source.Table(event.Table).Count(&count).Error; err != nil {
		return fmt.Errorf("count the rows of %s: %w", event.Table, err)
	}
	if added := count - copied[len(copied)-1].Rows; added != 0 {
		return fmt.Errorf("%w: events were added: %d; stop the server and every other program that changes it, or pass "+
			"--live", ErrSourceChanged, added)
	}
	return nil
}

// finishCopy makes the target usable. It chooses the key of the event, because the target does not generate keys above
// those of its rows before the end of the load.
func finishCopy(target *gorm.DB, row *keyset.Row) error {
	if err := target.Create(row).Error; err != nil {
		return fmt.Errorf("write the keyset of the database: %w", err)
	}
	var last int64
	if err := target.Table(event.Table).Select("coalesce(max(id), 0)").Scan(&last).Error; err != nil {
		return fmt.Errorf("find the last event: %w", err)
	}
	return event.Add(target, event.Event{ID: last + 1, Event: event.DatabaseCopied})
}

// copying reads all tables of a source, and writes them to a target unless that is nil.
type copying struct {
	source, target *gorm.DB
	progress       func(done int64)
	done           int64
	contents       []Content
	// hash hashes the rows of table, which is being read.
	table copiedTable
	hash  hash.Hash
}

func (c *copying) run() ([]Content, error) {
	for _, table := range copiedTables() {
		c.table, c.contents, c.hash = table, append(c.contents, Content{Table: table.name}), sha256.New()
		if err := table.copy(c); err != nil {
			return nil, err
		}
		c.content().Digest = hex.EncodeToString(c.hash.Sum(nil))
	}
	return c.contents, nil
}

func (c *copying) content() *Content { return &c.contents[len(c.contents)-1] }

func copyAll[Row any](c *copying) error { return copyRows[Row](c, c.source) }

func copyProviders(c *copying) error {
	kind := func(kind records.Kind) *gorm.DB { return records.WithDefaults(c.source).Where("kind = ?", kind) }
	if err := copyRows[records.OAuth2Provider](c, kind(records.KindOAuth2)); err != nil {
		return err
	}
	return copyRows[records.WorkspaceDirectoryProvider](c, kind(records.KindWorkspaceDirectory))
}

// copyEvents replaces the events that the trigger of creates has added to the target.
func copyEvents(c *copying) error {
	if c.target != nil {
		if err := c.target.Where("id > 0").Delete(&event.Event{}).Error; err != nil {
			return fmt.Errorf("remove events of the copy: %w", err)
		}
	}
	return copyAll[event.Event](c)
}

// copyPage is the number of rows in memory at a time, each with a secret of at most 1 MiB.
const copyPage = 200

// copyRows copies the rows of a model that a query selects, in the order of their keys.
func copyRows[Row any](c *copying, from *gorm.DB) error {
	statement, ctx := &gorm.Statement{DB: c.source}, c.source.Statement.Context
	if err := statement.Parse(new(Row)); err != nil {
		return fmt.Errorf("find the columns of %s: %w", c.table.name, err)
	}
	for after := int64(0); ; {
		var page []Row
		query := from.Session(&gorm.Session{}).Where(c.table.key+" > ?", after).Order(c.table.key).Limit(copyPage)
		if err := query.Find(&page).Error; err != nil {
			return fmt.Errorf("read rows of %s after %d: %w", c.table.name, after, err)
		}
		if len(page) == 0 {
			return nil
		}
		if c.target != nil {
			if err := c.target.Omit(clause.Associations).Create(&page).Error; err != nil {
				return fmt.Errorf("write rows of %s: %w", c.table.name, err)
			}
		}
		for i := range page {
			row := reflect.ValueOf(&page[i]).Elem()
			for _, name := range statement.Schema.DBNames {
				value, _ := statement.Schema.FieldsByDBName[name].ValueOf(ctx, row)
				if err := c.addValue(value); err != nil {
					return fmt.Errorf("read %s of %s after %d: %w", name, c.table.name, after, err)
				}
			}
			key, _ := statement.Schema.PrioritizedPrimaryField.ValueOf(ctx, row)
			after = key.(int64)
		}
		c.content().Rows += int64(len(page))
		c.done += int64(len(page))
		c.progress(c.done)
	}
}

// addValue adds a value to the hash, as JSON.
func (c *copying) addValue(value any) error {
	switch at := value.(type) {
	case database.Time:
		value = at.UnixMicro()
	case *database.Time:
		if value = nil; at != nil {
			value = at.UnixMicro()
		}
	}
	value, err := driver.DefaultParameterConverter.ConvertValue(value)
	if text, isText := value.(string); isText {
		// JSON would replace what is not UTF-8.
		value = []byte(text)
	}
	if err == nil {
		err = json.NewEncoder(c.hash).Encode(value)
	}
	return err //nolint:wrapcheck // The caller names the column.
}
