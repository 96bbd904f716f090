package sqlite_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

// These primary result codes of SQLite (https://sqlite.org/rescode.html) report problems with files, memory or locks.
// The others report errors of this program, or depend on the statement.
func TestErrorsOfSQLiteAreClassified(t *testing.T) {
	t.Parallel()
	away := []sqlite3.ErrNo{
		sqlite3.ErrPerm, sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrNomem, sqlite3.ErrReadonly, sqlite3.ErrIoErr,
		sqlite3.ErrCorrupt, sqlite3.ErrFull, sqlite3.ErrCantOpen, sqlite3.ErrProtocol, sqlite3.ErrNotADB,
	}
	const lastCode = sqlite3.ErrNo(28)
	for code := sqlite3.ErrNo(1); code <= lastCode; code++ {
		for _, native := range []error{
			sqlite3.Error{Code: code},
			sqlite3.Error{Code: code, ExtendedCode: code.Extend(4)},
			fmt.Errorf("insert: %w", sqlite3.Error{Code: code}),
		} {
			statement, commit := sqlite.Classify(native), sqlite.CommitError(native)
			if got := errors.Is(statement, database.ErrUnavailable); got != slices.Contains(away, code) {
				t.Errorf("%d in a statement: ErrUnavailable is %t", code, got)
			}
			if got := errors.Is(commit, database.ErrUnavailable); got != (slices.Contains(away, code) && code != sqlite3.ErrIoErr) {
				t.Errorf("%d in COMMIT: ErrUnavailable is %t", code, got)
			}
			isCorrupt := code == sqlite3.ErrNotADB || code == sqlite3.ErrCorrupt
			if errors.Is(statement, database.ErrCorrupt) != isCorrupt || errors.Is(statement, database.ErrFull) != (code == sqlite3.ErrFull) {
				t.Errorf("%d: error is %v", code, statement)
			}
			// Only if SQLite failed to write or sync may the transaction still be there after a crash.
			if got := errors.Is(commit, database.ErrOutcomeUnknown); got != (code == sqlite3.ErrIoErr) ||
				errors.Is(statement, database.ErrOutcomeUnknown) {
				t.Errorf("%d: ErrOutcomeUnknown is %t of %v, of %v", code, got, commit, statement)
			}
			if !errors.Is(statement, native) || !errors.Is(commit, native) {
				t.Errorf("%d: %v and %v hide the cause", code, statement, commit)
			}
			if again := sqlite.Classify(fmt.Errorf("again: %w", statement)); strings.Count(again.Error(), database.ErrUnavailable.Error()) > 1 {
				t.Errorf("%d: error repeats ErrUnavailable: %v", code, again)
			}
		}
	}
	for _, other := range []error{nil, gorm.ErrDuplicatedKey, gorm.ErrRecordNotFound, errors.New("busy")} {
		if sqlite.Classify(other) != other || sqlite.CommitError(other) != other { //nolint:errorlint // The very same.
			t.Errorf("%v is classified, want it unchanged", other)
		}
	}
}

type entry struct {
	PK         int64 `gorm:"primaryKey"`
	Slug, Name string
}

// Errors of statements are classified in every kind of GORM's methods.
func TestStatementErrorsAreClassified(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var rows []entry
	kinds := map[string]func(tx *gorm.DB) error{
		"Exec":   func(tx *gorm.DB) error { return tx.Exec("DELETE FROM entries").Error },
		"Create": func(tx *gorm.DB) error { return tx.Create(&entry{}).Error },
		"Update": func(tx *gorm.DB) error { return tx.Model(&entry{PK: 1}).Update("name", "x").Error },
		"Delete": func(tx *gorm.DB) error { return tx.Delete(&entry{PK: 1}).Error },
		"Find":   func(tx *gorm.DB) error { return tx.Find(&rows).Error },
		"Raw":    func(tx *gorm.DB) error { return tx.Raw("SELECT slug FROM entries").Scan(new([]string)).Error },
		"Rows": func(tx *gorm.DB) error {
			rows, err := tx.Model(&entry{}).Rows()
			if err == nil {
				err = errors.Join(rows.Err(), rows.Close())
			}
			return err
		},
	}
	for kind, statement := range kinds {
		err := r.Write(t.Context(), func(tx *gorm.DB) error {
			if err := corruptSchema(tx); err != nil {
				return err
			}
			// Check the error before the commit can classify it.
			if err := statement(tx); !errors.Is(err, database.ErrUnavailable) {
				t.Errorf("%s: error is %v, want ErrUnavailable", kind, err)
			}
			return errOwn
		})
		if !errors.Is(err, errOwn) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	r.close(t)
}
