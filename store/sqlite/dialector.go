package sqlite

import (
	"fmt"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
)

// dialector makes GORM speak to SQLite, and return the errors of the seam.
type dialector struct{ gormsqlite.Dialector }

// Translate names the errors of the driver (gorm.ErrorTranslator).
func (d dialector) Translate(err error) error { return classify(d.Dialector.Translate(err)) }

// Initialize makes GORM translate all errors.
func (d dialector) Initialize(db *gorm.DB) error {
	if err := d.Dialector.Initialize(db); err != nil {
		return fmt.Errorf("initialize GORM: %w", err)
	}
	// GORM itself leaves out the errors of Raw and Rows.
	err := db.Callback().Row().After("gorm:row").Register("providerd:translate", func(db *gorm.DB) {
		db.Error = d.Translate(db.Error)
	})
	if err != nil {
		return fmt.Errorf("initialize GORM: %w", err)
	}
	return nil
}
