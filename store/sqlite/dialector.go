package sqlite

import (
	"fmt"

	gormsqlite "gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// dialector makes GORM speak to SQLite, and return the errors of the seam.
type dialector struct{ gormsqlite.Dialector }

// Translate names the errors of the driver (gorm.ErrorTranslator).
func (d dialector) Translate(err error) error { return classify(d.Dialector.Translate(err)) }

// Initialize makes ON CONFLICT DO NOTHING an INSERT OR IGNORE. Only for that SQLite keeps no journal for a statement of
// many rows, because no constraint can abort it; it also leaves out rows that break another constraint than UNIQUE.
func (d dialector) Initialize(db *gorm.DB) error {
	if err := d.Dialector.Initialize(db); err != nil {
		return fmt.Errorf("initialize GORM: %w", err)
	}
	insert := db.ClauseBuilders["INSERT"]
	db.ClauseBuilders["INSERT"] = func(c clause.Clause, builder clause.Builder) {
		if parsed, ok := c.Expression.(clause.Insert); ok && doesNothing(builder) {
			parsed.Modifier = "OR IGNORE"
			c.Expression = parsed
		}
		insert(c, builder)
	}
	db.ClauseBuilders["ON CONFLICT"] = func(c clause.Clause, builder clause.Builder) {
		if !doesNothing(builder) {
			c.Build(builder)
		}
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

// doesNothing tells whether a statement does nothing with a row of which a unique value is taken.
func doesNothing(builder clause.Builder) bool {
	statement, ok := builder.(*gorm.Statement)
	if !ok {
		return false
	}
	conflict, ok := statement.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	return ok && conflict.DoNothing
}
