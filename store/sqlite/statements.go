package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/mattn/go-sqlite3"
)

// statements runs statements on one connection and prepares each text once. It uses the driver, because database/sql
// would convert and copy each value. Calls wait for each other. Its errors are those of the driver.
type statements struct {
	conn     *sql.Conn
	prepared map[string]*sqlite3.SQLiteStmt
}

// exec runs a statement that returns no rows.
func (s *statements) exec(ctx context.Context, text string) error { return s.query(ctx, text, nil) }

// query calls each for each row that a statement returns. The context should have no end: see Insert.
func (s *statements) query(
	ctx context.Context, text string, each func(row []driver.Value) error, values ...driver.NamedValue,
) error {
	return s.conn.Raw(func(native any) error { //nolint:wrapcheck // Callers do.
		if s.prepared[text] == nil {
			prepared, err := native.(*sqlite3.SQLiteConn).PrepareContext(ctx, text)
			if err != nil {
				return err //nolint:wrapcheck // Callers do.
			}
			s.prepared[text] = prepared.(*sqlite3.SQLiteStmt)
		}
		rows, err := s.prepared[text].QueryContext(ctx, values)
		if err != nil {
			return err //nolint:wrapcheck // Callers do.
		}
		row := make([]driver.Value, len(rows.Columns()))
		for err == nil {
			if err = rows.Next(row); err == nil {
				err = each(row)
			}
		}
		// After an error, Close repeats it.
		if closeErr := rows.Close(); errors.Is(err, io.EOF) {
			err = closeErr
		}
		return err
	})
}

// close closes the statements and the connection.
func (s *statements) close() error {
	errs := []error{s.conn.Raw(func(any) (err error) {
		for _, statement := range s.prepared {
			err = errors.Join(err, statement.Close())
		}
		return err
	}), s.conn.Close()}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("disconnect: %w", err)
	}
	return nil
}
