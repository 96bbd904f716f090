package database

import (
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Pool is the connections to a database, which GORM uses, too. The zero value is one that was never opened.
type Pool struct {
	*sql.DB
	// GORM runs statements over SQL.
	GORM *gorm.DB
}

// ClosePools closes the connections of pools that were opened, and waits for running statements.
func ClosePools(pools ...Pool) error {
	var errs []error
	for _, pool := range pools {
		if pool.DB == nil {
			continue
		}
		if err := pool.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close connections: %w", err))
		}
	}
	return errors.Join(errs...)
}

// OpenGORM lets GORM use connections. Its errors are those of the driver as the dialector translates them, and then as
// classify does. It prepares statements where the driver does not.
func OpenGORM(dialector gorm.Dialector, classify func(error) error, prepares bool) (*gorm.DB, error) {
	db, err := gorm.Open(translator{dialector, classify}, &gorm.Config{
		// A log of statements would have their values.
		Logger: logger.Discard, SkipDefaultTransaction: true, TranslateError: true, DisableAutomaticPing: true,
		PrepareStmt: prepares,
	})
	if err != nil {
		return nil, fmt.Errorf("open database: %w", classify(err))
	}
	return db, nil
}

// translator is a dialector that returns the errors of the seam.
type translator struct {
	gorm.Dialector
	classify func(error) error
}

// Translate names the errors of the driver (gorm.ErrorTranslator).
func (t translator) Translate(err error) error {
	if named, ok := t.Dialector.(gorm.ErrorTranslator); ok {
		err = named.Translate(err)
	}
	return t.classify(err)
}

// Initialize makes GORM translate the errors of Raw and Rows, which it leaves out.
func (t translator) Initialize(db *gorm.DB) error {
	err := t.Dialector.Initialize(db)
	if err == nil {
		err = db.Callback().Row().After("gorm:row").Register("providerd:translate", func(db *gorm.DB) {
			db.Error = t.Translate(db.Error)
		})
	}
	if err != nil {
		return fmt.Errorf("initialize GORM: %w", err)
	}
	return nil
}
