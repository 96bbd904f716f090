package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

// fault is a failure after the first statement of a transaction.
type fault struct {
	strike func(tx *gorm.DB) error
	// undo restores the settings of the connection.
	undo []string
	// want is nil for an error of this program.
	want    error
	message string
}

// run causes the fault and then undoes it.
func (f fault) run(tx *gorm.DB) error { return errors.Join(f.strike(tx), executing(f.undo...)(tx)) }

func faults() map[string]fault {
	const insert = "INSERT INTO applications (slug, name) "
	return map[string]fault{
		"error of its own": {strike: func(*gorm.DB) error { return errOwn }, want: errOwn},
		"taken slug":       {strike: executing(insert + "VALUES ('taken', '')"), want: gorm.ErrDuplicatedKey},
		"taken primary key": {
			strike: executing("INSERT INTO applications (id, slug, name) SELECT id, 'other', '' FROM applications LIMIT 1"),
			want:   gorm.ErrDuplicatedKey,
		},
		"broken CHECK": {strike: executing(`INSERT INTO keyset VALUES (2, '', '', '', '')`), message: "CHECK constraint failed"},
		"NOT NULL":     {strike: executing(insert + "VALUES ('x', NULL)"), message: "NOT NULL constraint failed"},
		"no table":     {strike: executing("INSERT INTO missing VALUES (1)"), message: "no such table"},
		"no SQL":       {strike: executing("no SQL"), message: "syntax error"},
		"too large":    {strike: executing(insert + "VALUES ('x', zeroblob(2000000000))"), message: "too big"},
		"disk full": {
			strike: executing("PRAGMA max_page_count = 1", insert+"VALUES ('x', zeroblob(1000000))"),
			undo:   []string{"PRAGMA max_page_count = 1073741823"}, want: database.ErrUnavailable, message: "full",
		},
		"read-only": {
			strike: executing("PRAGMA query_only = on", insert+"VALUES ('x', '')"),
			undo:   []string{"PRAGMA query_only = off"}, want: database.ErrUnavailable, message: "readonly",
		},
		"damaged": {
			strike: func(tx *gorm.DB) error {
				return errors.Join(corruptSchema(tx), executing("INSERT INTO tokens (id) VALUES (1)")(tx))
			},
			want: database.ErrUnavailable, message: "malformed",
		},
	}
}

// A failed transaction stores nothing, has the right class of error, and does not affect the next one.
func TestFailedTransactionLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.commit(t.Context(), "taken"); err != nil {
		t.Fatal(err)
	}
	want := []string{"taken"}
	for way, commit := range r.ways() {
		for name, fault := range faults() {
			err := commit(t.Context(), func(tx *gorm.DB) error {
				if err := insertApplication(tx, "lost"); err != nil {
					t.Errorf("%s: %s: %v", way, name, err)
				}
				return fault.run(tx)
			})
			if err == nil || fault.want != nil && !errors.Is(err, fault.want) || !strings.Contains(err.Error(), fault.message) {
				t.Errorf("%s: %s: error is %v, want %v with %q", way, name, err, fault.want, fault.message)
			}
			if errors.Is(err, database.ErrUnavailable) != (fault.want == database.ErrUnavailable) || //nolint:errorlint // Not an error that came.
				errors.Is(err, database.ErrOutcomeUnknown) {
				t.Errorf("%s: %s: error is %v", way, name, err)
			}
			next := fmt.Sprint("after ", name, " in ", way)
			if err := errors.Join(r.Check(t.Context()), commit(t.Context(), func(tx *gorm.DB) error {
				return insertApplication(tx, next)
			})); err != nil {
				t.Errorf("%s: %s: then %v", way, name, err)
			}
			want = append(want, next)
		}
	}
	if stored := r.slugs(t); !slices.Equal(stored, want) {
		t.Errorf("stored: %v, want %v", stored, want)
	}
	r.close(t)
}

// If the caller of a change gives up, nothing is stored and no transaction stays open. A batch serves several callers
// and need not stop with the context of one, but its error must report whether it was stored.
func TestCanceledTransactionReportsOutcome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const endless = `INSERT INTO applications (slug, name) WITH RECURSIVE n (i) AS
		(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(randomblob(16)), '' FROM n`
	var want []string
	for way, commit := range r.ways() {
		for when, statements := range map[string]func(tx *gorm.DB, cancel func()) error{
			"before": func(*gorm.DB, func()) error { return nil },
			"within": func(tx *gorm.DB, cancel func()) error {
				cancel()
				return executing("DELETE FROM tokens")(tx)
			},
			"within a statement": func(tx *gorm.DB, cancel func()) error {
				go cancel()
				return executing(endless)(tx)
			},
			"at the end": func(_ *gorm.DB, cancel func()) error {
				cancel()
				return nil
			},
		} {
			slug := fmt.Sprint("cancelled ", when, " of ", way)
			ctx, cancel := context.WithCancel(t.Context())
			if when == "before" {
				cancel()
			}
			err := commit(ctx, func(tx *gorm.DB) error {
				return errors.Join(insertApplication(tx, slug), statements(tx, cancel))
			})
			cancel()
			if err == nil {
				want = append(want, slug)
			}
			if err == nil && (way == "Change" || when == "within a statement") ||
				errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrOutcomeUnknown) {
				t.Errorf("%s: error is %v", slug, err)
			}
			if err := errors.Join(r.Check(t.Context()), commit(t.Context(), executing("DELETE FROM tokens"))); err != nil {
				t.Errorf("after one that was %s: %v", slug, err)
			}
		}
	}
	if stored := r.slugs(t); !slices.Equal(stored, want) {
		t.Errorf("stored: %v, want %v", stored, want)
	}
	r.close(t)
}

// A COMMIT that SQLite refuses leaves the transaction open unless it is rolled back.
func TestRefusedCommitIsRolledBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	err := r.Change(t.Context(), executing("PRAGMA defer_foreign_keys = on", "INSERT INTO backchannels VALUES (7, 7)"))
	if !errors.Is(err, gorm.ErrForeignKeyViolated) || errors.Is(err, database.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	var left int64
	if err := errors.Join(r.Change(t.Context(), executing("DELETE FROM tokens")), r.commit(t.Context(), "next"),
		r.Reader().Raw("SELECT count(*) FROM backchannels").Scan(&left).Error); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
	r.close(t)
}
