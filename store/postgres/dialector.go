package postgres

import (
	"fmt"

	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// dialector makes GORM speak to PostgreSQL, and return the errors of the seam.
type dialector struct{ gormpostgres.Dialector }

// Translate names the errors of the driver (gorm.ErrorTranslator).
func (d dialector) Translate(err error) error { return classify(d.Dialector.Translate(err)) }

// Initialize makes GORM translate the errors of Raw and Rows, too.
func (d dialector) Initialize(db *gorm.DB) error {
	if err := d.Dialector.Initialize(db); err != nil {
		return fmt.Errorf("initialize GORM: %w", err)
	}
	err := db.Callback().Row().After("gorm:row").Register("providerd:translate", func(db *gorm.DB) {
		db.Error = d.Translate(db.Error)
	})
	if err != nil {
		return fmt.Errorf("initialize GORM: %w", err)
	}
	return nil
}
