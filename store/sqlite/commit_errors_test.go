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
	const insert = "INSERT INTO entries (slug, name) "
	return map[string]fault{
		"error of its own": {strike: func(*gorm.DB) error { return errOwn }, want: errOwn},
		"taken slug":       {strike: executing(insert + "VALUES ('taken', '')"), want: gorm.ErrDuplicatedKey},
		"taken primary key": {
			strike: executing("INSERT INTO entries (pk, slug, name) SELECT pk, 'other', '' FROM entries LIMIT 1"),
			want:   gorm.ErrDuplicatedKey,
		},
		"broken CHECK": {strike: executing(`INSERT INTO keyset VALUES (2, x'0a', x'0b', x'0c', x'0d')`), message: "CHECK constraint failed"},
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
	for name, fault := range faults() {
		err := r.Write(t.Context(), func(tx *gorm.DB) error {
			if err := insertEntry(tx, "lost"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return fault.run(tx)
		})
		expectFault(t, name, err, fault.want, fault.message)
		next := fmt.Sprint("after ", name)
		if err := errors.Join(r.Check(t.Context()), r.Write(t.Context(), func(tx *gorm.DB) error { return insertEntry(tx, next) })); err != nil {
			t.Errorf("%s: then %v", name, err)
		}
		want = append(want, next)
	}
	if stored := r.slugs(t); !slices.Equal(stored, want) {
		t.Errorf("stored: %v, want %v", stored, want)
	}
	r.close(t)
}

// expectFault expects an error with a message that is ErrUnavailable only if it wraps want.
func expectFault(t *testing.T, name string, err, want error, message string) {
	t.Helper()
	if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), message) {
		t.Errorf("%s: error is %v, want %v with %q", name, err, want, message)
	}
	if errors.Is(err, database.ErrUnavailable) != errors.Is(want, database.ErrUnavailable) || errors.Is(err, database.ErrOutcomeUnknown) {
		t.Errorf("%s: error is %v", name, err)
	}
}

// A failed insert stores nothing, has the right class of error, and does not affect the next one. Check writes, which
// costs a sync, only after one that could not use the database.
func TestFailedInsertLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.commit(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	other := plain(t, r.path)
	checkWrites := func() bool {
		t.Helper()
		var busy, before, after, copied int
		const count = "PRAGMA wal_checkpoint(NOOP)"
		salts := r.salts(t)
		if err := errors.Join(other.QueryRowContext(t.Context(), count).Scan(&busy, &before, &copied), r.Check(t.Context()),
			other.QueryRowContext(t.Context(), count).Scan(&busy, &after, &copied)); err != nil {
			t.Fatal(err)
		}
		return after > before || r.salts(t) != salts
	}
	want := []string{"first"}
	for name, test := range map[string]struct {
		do, undo   string
		slug, text any
		want       error
		message    string
	}{
		"disk full": {
			"PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1073741823", "x", strings.Repeat("0", 1_000_000),
			database.ErrFull, "full",
		},
		"read-only": {"PRAGMA query_only = on", "PRAGMA query_only = off", "x", "", database.ErrUnavailable, "readonly"},
		"NOT NULL":  {"", "", nil, "", database.ErrInsertAlone, "NOT NULL constraint failed"},
	} {
		if checkWrites() {
			t.Errorf("Check writes before %s", name)
		}
		run(t, r.Inserter(), test.do)
		err := r.insertRow(t.Context(), test.slug, test.text)
		run(t, r.Inserter(), test.undo)
		expectFault(t, name, err, test.want, test.message)
		if wrote := checkWrites(); wrote != errors.Is(test.want, database.ErrUnavailable) {
			t.Errorf("Check after %s: it writes: %t", name, wrote)
		}
		want = append(want, "after "+name)
		if err := r.commit(t.Context(), "after "+name); err != nil {
			t.Errorf("%s: then %v", name, err)
		}
	}
	if stored := r.slugs(t); !slices.Equal(stored, want) {
		t.Errorf("stored: %v, want %v", stored, want)
	}
	r.close(t)
}

// If the caller of a change gives up, nothing is stored and no transaction stays open. An insert, which serves several
// callers, does not stop with the context of one.
func TestCanceledTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const endless = `INSERT INTO entries (slug, name) WITH RECURSIVE n (i) AS
		(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(randomblob(16)), '' FROM n`
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
		ctx, cancel := context.WithCancel(t.Context())
		if when == "before" {
			cancel()
		}
		err := r.Write(ctx, func(tx *gorm.DB) error { return errors.Join(insertEntry(tx, "lost"), statements(tx, cancel)) })
		cancel()
		if err == nil || errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrOutcomeUnknown) {
			t.Errorf("canceled %s: error is %v", when, err)
		}
		if err := errors.Join(r.Check(t.Context()), r.commit(ctx, when)); err != nil {
			t.Errorf("after one that was canceled %s: %v", when, err)
		}
	}
	if stored := r.slugs(t); len(stored) != 4 || slices.Contains(stored, "lost") {
		t.Errorf("stored: %v", stored)
	}
	r.close(t)
}

// A COMMIT that SQLite refuses leaves the transaction open unless it is rolled back.
func TestRefusedCommitIsRolledBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	err := r.Write(t.Context(), executing("PRAGMA defer_foreign_keys = on", "INSERT INTO backchannels VALUES (7, 7)"))
	if !errors.Is(err, gorm.ErrForeignKeyViolated) || errors.Is(err, database.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	var left int64
	if err := errors.Join(r.Write(t.Context(), executing("DELETE FROM tokens")), r.commit(t.Context(), "next"),
		r.Reader().Raw("SELECT count(*) FROM backchannels").Scan(&left).Error); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
	r.close(t)
}
