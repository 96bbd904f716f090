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
// would convert and copy each value. Its errors are those of the driver.
type statements struct {
	conn     *sql.Conn
	prepared map[string]*sqlite3.SQLiteStmt
}

// run calls use with the statement of a text.
func (s *statements) run(ctx context.Context, text string, use func(*sqlite3.SQLiteStmt) error) error {
	return s.conn.Raw(func(native any) error { //nolint:wrapcheck // Callers do.
		statement, ok := s.prepared[text]
		if !ok {
			prepared, err := native.(*sqlite3.SQLiteConn).PrepareContext(ctx, text)
			if err != nil {
				return err //nolint:wrapcheck // Callers do.
			}
			statement = prepared.(*sqlite3.SQLiteStmt)
			s.prepared[text] = statement
		}
		return use(statement)
	})
}

// exec runs a statement. The context should have no end: see Insert.
func (s *statements) exec(
	ctx context.Context, text string, values ...driver.NamedValue,
) (result driver.Result, err error) {
	err = s.run(ctx, text, func(statement *sqlite3.SQLiteStmt) (err error) {
		result, err = statement.ExecContext(ctx, values)
		return err //nolint:wrapcheck // Callers do.
	})
	return result, err
}

// query calls each for each row that a statement returns.
func (s *statements) query(
	ctx context.Context, text string, each func(row []driver.Value) error, values ...driver.NamedValue,
) error {
	return s.run(ctx, text, func(statement *sqlite3.SQLiteStmt) error {
		rows, err := statement.QueryContext(ctx, values)
		if err != nil {
			return err //nolint:wrapcheck // Callers do.
		}
		row := make([]driver.Value, len(rows.Columns()))
		for err == nil {
			if err = rows.Next(row); err == nil {
				err = each(row)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return errors.Join(err, rows.Close())
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
