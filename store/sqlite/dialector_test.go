package sqlite_test

import (
	"errors"
	"fmt"
	"testing"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"example.com/providerd/store/database"
)

type application struct {
	ID         int32
	Slug, Name string
}

// ON CONFLICT DO NOTHING leaves out the rows whose slug is taken, and no other, and counts those that came in.
func TestOnConflictDoNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for way, commit := range r.ways() {
		for _, count := range []int{1, 2, 64} {
			for name, taken := range map[string]func(i int) bool{
				"none": func(int) bool { return false }, "all": func(int) bool { return true },
				"first": func(i int) bool { return i == 0 }, "last": func(i int) bool { return i == count-1 },
				"odd": func(i int) bool { return i%2 == 1 },
			} {
				what := fmt.Sprint(way, ", ", name, " of ", count, " taken ")
				err := commit(t.Context(), func(tx *gorm.DB) error {
					var rows []application
					for i := range count {
						row := application{Slug: fmt.Sprint(what, i), Name: "new"}
						if rows = append(rows, row); taken(i) {
							if err := tx.Create(&application{Slug: row.Slug, Name: "old"}).Error; err != nil {
								return err
							}
						}
					}
					inserted := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows)
					var old, stored int64
					err := errors.Join(inserted.Error,
						tx.Model(&application{}).Where("slug LIKE ? AND name = 'old'", what+"%").Count(&old).Error,
						tx.Model(&application{}).Where("slug LIKE ?", what+"%").Count(&stored).Error)
					if inserted.RowsAffected != int64(count)-old || stored != int64(count) {
						t.Errorf("%s: RowsAffected is %d; %d rows are old, %d stored", what, inserted.RowsAffected, old, stored)
					}
					for i, row := range rows {
						var now application
						if err := tx.Take(&now, "slug = ?", row.Slug).Error; err != nil || (now.Name == "old") != taken(i) {
							t.Errorf("%s: row %d is %+v, %v", what, i, now, err)
						}
					}
					return err
				})
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
	}
	r.close(t)
}

// What is not ON CONFLICT DO NOTHING is built as GORM's own dialect of SQLite does.
func TestOtherInsertsAreGORMsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	own, err := gorm.Open(gormsqlite.Open(":memory:"), &gorm.Config{SkipDefaultTransaction: true})
	if err != nil {
		t.Fatal(err)
	}
	slug := []clause.Column{{Name: "slug"}}
	for name, clauses := range map[string][]clause.Expression{
		"none":      nil,
		"update":    {clause.OnConflict{Columns: slug, DoUpdates: clause.AssignmentColumns([]string{"name"})}},
		"assign":    {clause.OnConflict{Columns: slug, DoUpdates: clause.Assignments(map[string]any{"name": "x"})}},
		"all":       {clause.OnConflict{UpdateAll: true}},
		"replace":   {clause.Insert{Modifier: "OR REPLACE"}},
		"returning": {clause.Returning{}},
	} {
		build := func(db *gorm.DB) string {
			rows := []application{{Slug: "a"}, {Slug: "b"}}
			return db.Session(&gorm.Session{DryRun: true}).Clauses(clauses...).Create(&rows).Statement.SQL.String()
		}
		want := build(own)
		err := r.batches.Commit(t.Context(), func(tx *gorm.DB) error {
			if got := build(tx); got != want || want == "" {
				t.Errorf("%s: statement is %s, want %s", name, got, want)
			}
			return nil
		})
		if got := build(r.Reader()); got != want || err != nil {
			t.Errorf("%s: statement is %s, want %s, %v", name, got, want, err)
		}
	}
	r.close(t)
}

// However a statement is run over GORM, its error is that of the seam.
func TestErrorsOfEveryKindOfStatement(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var rows []application
	kinds := map[string]func(tx *gorm.DB) error{
		"Exec":   func(tx *gorm.DB) error { return tx.Exec("DELETE FROM applications").Error },
		"Create": func(tx *gorm.DB) error { return tx.Create(&application{}).Error },
		"Update": func(tx *gorm.DB) error { return tx.Model(&application{ID: 1}).Update("name", "x").Error },
		"Delete": func(tx *gorm.DB) error { return tx.Delete(&application{ID: 1}).Error },
		"Find":   func(tx *gorm.DB) error { return tx.Find(&rows).Error },
		"Take":   func(tx *gorm.DB) error { return tx.Take(&application{}).Error },
		"Count":  func(tx *gorm.DB) error { return tx.Model(&application{}).Count(new(int64)).Error },
		"Pluck":  func(tx *gorm.DB) error { return tx.Model(&application{}).Pluck("slug", new([]string)).Error },
		"Raw":    func(tx *gorm.DB) error { return tx.Raw("SELECT slug FROM applications").Scan(new([]string)).Error },
		"Rows": func(tx *gorm.DB) error {
			rows, err := tx.Model(&application{}).Rows()
			if err == nil {
				err = errors.Join(rows.Err(), rows.Close())
			}
			return err
		},
	}
	for way, commit := range r.ways() {
		for kind, statement := range kinds {
			err := commit(t.Context(), func(tx *gorm.DB) error {
				if err := damage(tx); err != nil {
					return err
				}
				// The error is looked at before the commit can do its part.
				if err := statement(tx); !errors.Is(err, database.ErrUnavailable) {
					t.Errorf("%s in %s: error is %v, want ErrUnavailable", kind, way, err)
				}
				return errOwn
			})
			if !errors.Is(err, errOwn) {
				t.Errorf("%s in %s: %v", kind, way, err)
			}
		}
	}
	r.close(t)
}
