package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"example.com/providerd/store/database"
)

// statement is a statement of an exchange, with its values in binary.
type statement struct {
	text   string
	values [][]byte
}

// errNotSent means that the server cannot have received all statements.
var errNotSent = fmt.Errorf("%w: connection lost", database.ErrUnavailable)

// exchange sends statements in one message and returns their results, as text. After one that fails, none runs. Each is
// parsed only once those before it have run: parsing waits for locks, for as long as the lock_timeout that an earlier
// statement set. Only a warning of the last statement is kept.
func (t *transaction) exchange(ctx context.Context, statements ...statement) (results []*pgconn.Result, err error) {
	prepared := t.link.Prepared
	pipeline := t.native.PgConn().StartPipeline(ctx)
	added := queue(pipeline, prepared, statements)
	if err := pipeline.Sync(); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotSent, err)
	}
	for err == nil && len(results) < len(statements) {
		var found any
		t.link.Warning = nil
		found, err = pipeline.GetResults()
		switch found := found.(type) {
		case *pgconn.StatementDescription:
			prepared[added[0]] = nameOf(len(prepared))
			added = added[1:]
		case *pgconn.ResultReader:
			result := found.Read()
			results, err = append(results, result), result.Err
		case *pgconn.PipelineSync:
			err = fmt.Errorf("the server ran %d of %d statements", len(results), len(statements))
		}
	}
	if closeErr := pipeline.Close(); err == nil {
		err = closeErr
	}
	return results, err
}

// queue adds statements to a pipeline, and returns the texts of the statements that must be prepared. prepared has the
// names of the statements that the connection has prepared, by text; nil to prepare none.
func queue(pipeline *pgconn.Pipeline, prepared map[string]string, statements []statement) (added []string) {
	binary := []int16{pgtype.BinaryFormatCode}
	for _, s := range statements {
		if prepared == nil {
			pipeline.SendQueryParams(s.text, s.values, nil, binary, nil)
			continue
		}
		name, ok := prepared[s.text]
		if !ok {
			name = nameOf(len(prepared) + len(added))
			added = append(added, s.text)
			pipeline.SendPrepare(name, s.text, nil)
		}
		pipeline.SendQueryPrepared(name, s.values, binary, nil)
	}
	return added
}

// nameOf returns the name of a prepared statement.
func nameOf(number int) string { return fmt.Sprint("providerd", number) }
