package sqlite_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

type application struct {
	ID         int32
	Slug, Name string
}

// Errors of statements are classified in every kind of GORM's methods, and in Insert, which bypasses GORM.
func TestStatementErrorsAreClassified(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var rows []application
	kinds := map[string]func(tx *gorm.DB) error{
		"Exec":   func(tx *gorm.DB) error { return tx.Exec("DELETE FROM applications").Error },
		"Create": func(tx *gorm.DB) error { return tx.Create(&application{}).Error },
		"Update": func(tx *gorm.DB) error { return tx.Model(&application{ID: 1}).Update("name", "x").Error },
		"Delete": func(tx *gorm.DB) error { return tx.Delete(&application{ID: 1}).Error },
		"Find":   func(tx *gorm.DB) error { return tx.Find(&rows).Error },
		"Raw":    func(tx *gorm.DB) error { return tx.Raw("SELECT slug FROM applications").Scan(new([]string)).Error },
		"Rows": func(tx *gorm.DB) error {
			rows, err := tx.Model(&application{}).Rows()
			if err == nil {
				err = errors.Join(rows.Err(), rows.Close())
			}
			return err
		},
	}
	err := r.batches.Commit(t.Context(), 0, func(tx database.Batch) error {
		if err := corruptSchema(tx.DB()); err != nil {
			return err
		}
		if _, err := tx.Insert([]*inserted{{Slug: "a"}}); !errors.Is(err, database.ErrUnavailable) {
			t.Errorf("Insert: error is %v, want ErrUnavailable", err)
		}
		return errOwn
	})
	if !errors.Is(err, errOwn) {
		t.Error(err)
	}
	for way, commit := range r.ways() {
		for kind, statement := range kinds {
			err := commit(t.Context(), func(tx *gorm.DB) error {
				if err := corruptSchema(tx); err != nil {
					return err
				}
				// Check the error before the commit can classify it.
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
