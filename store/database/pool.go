package database

import (
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Pool is a connection pool with its GORM handle. The zero value is a pool that was never opened.
type Pool struct {
	*sql.DB
	// GORM uses the connections of DB.
	GORM *gorm.DB
}

// ClosePools closes the pools that were opened, and waits for their running statements.
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

// OpenGORM returns a GORM handle for the connections of a dialector. Its errors come from the driver, translated by
// the dialector and then by classify. Only drivers keep
// prepared statements: GORM's wait, under one lock, for connections that belong to transactions, which wait for it.
func OpenGORM(dialector gorm.Dialector, classify func(error) error) (*gorm.DB, error) {
	db, err := gorm.Open(translator{dialector, classify}, &gorm.Config{
		// A log of statements would contain their values.
		Logger: logger.Discard, SkipDefaultTransaction: true, TranslateError: true, DisableAutomaticPing: true,
	})
	if err != nil {
		return nil, fmt.Errorf("open database: %w", classify(err))
	}
	return db, nil
}

// translator is a dialector that translates errors into errors of this package.
type translator struct {
	gorm.Dialector
	classify func(error) error
}

// Translate implements gorm.ErrorTranslator.
func (t translator) Translate(err error) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return ErrNotFound
	}
	if inner, ok := t.Dialector.(gorm.ErrorTranslator); ok {
		err = inner.Translate(err)
	}
	return t.classify(err)
}

// Initialize also makes GORM translate the errors of Raw and Rows, which it does not by itself.
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
