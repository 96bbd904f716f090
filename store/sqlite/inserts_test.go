package sqlite_test

import (
	"errors"
	"fmt"
	"testing"

	"example.com/providerd/store/database"
)

// inserted is a row whose id SQLite assigns.
type inserted struct{ Slug, Name string }

func (inserted) TableName() string { return "applications" }

// Insert skips and counts the rows whose slug is taken, and no others.
func TestInsertSkipsTakenRows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, count := range []int{0, 1, 2, 3, 64, 65, 200} {
		for name, taken := range map[string]func(i int) bool{
			"none": func(int) bool { return false }, "all": func(int) bool { return true },
			"first": func(i int) bool { return i == 0 }, "last": func(i int) bool { return i == count-1 },
			"odd": func(i int) bool { return i%2 == 1 },
		} {
			what := fmt.Sprint(name, " of ", count, " taken ")
			err := r.batches.Commit(t.Context(), 0, func(batch database.Batch) error {
				tx, rows := batch.DB(), make([]*inserted, count)
				for i := range rows {
					rows[i] = &inserted{Slug: fmt.Sprint(what, i), Name: "new"}
					if !taken(i) {
						continue
					}
					if err := tx.Create(&application{Slug: rows[i].Slug, Name: "old"}).Error; err != nil {
						return err
					}
				}
				left, err := batch.Insert(rows)
				var old, stored int64
				err = errors.Join(err,
					tx.Model(&application{}).Where("slug LIKE ? AND name = 'old'", what+"%").Count(&old).Error,
					tx.Model(&application{}).Where("slug LIKE ?", what+"%").Count(&stored).Error)
				if len(left) != 1 || int64(left[0]) != old || stored != int64(count) {
					t.Errorf("%s: %d rows are skipped; %d rows are old, %d stored", what, left, old, stored)
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
	r.close(t)
}

// Errors of statements that bypass GORM are classified, too.
func TestErrorsOfInsert(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	err := r.batches.Commit(t.Context(), 0, func(tx database.Batch) error {
		if err := corruptSchema(tx.DB()); err != nil {
			return err
		}
		if _, err := tx.Insert([]*inserted{{Slug: "a"}}); !errors.Is(err, database.ErrUnavailable) {
			t.Errorf("error is %v, want ErrUnavailable", err)
		}
		return errOwn
	})
	if !errors.Is(err, errOwn) {
		t.Error(err)
	}
	r.close(t)
}
