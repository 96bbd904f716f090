package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/database"
)

const beginStatement = "BEGIN ISOLATION LEVEL READ COMMITTED"

// secureStatement makes COMMIT wait until the transaction is on the disks of this server and its synchronous standbys,
// and makes the server warn if a standby lacks it, whatever the settings of the role and the database. The message of
// pg_logical_emit_message makes read-only transactions wait too, so that no response is based on a row that could still
// be lost.
const secureStatement = secure + `NULL::bytea FROM schema_support`

// secureBatch also reads the version of the keyset. ChangeAlone waits until the transaction ends.
const secureBatch = secure + `(SELECT version FROM keyset) FROM schema_support`

const secure = `SELECT oldest_level, current_setting('transaction_read_only'),
	set_config('synchronous_commit', 'on', true), set_config('client_min_messages', 'warning', true),
	set_config('lock_timeout', '2s', true), set_config('idle_in_transaction_session_timeout', '10s', true),
	pg_logical_emit_message(true, 'providerd', '')::text, `

const reserveStatement = "SELECT nextval('providers_pk_seq') FROM generate_series(1, $1)"

// noBatch is the number of pks of a transaction that is not for a batch.
const noBatch = -1

// begin begins the transaction and reserves pks, in one message of statements that the server plans once. It returns
// database.ErrUnavailable if that fails.
func (t *transaction) begin(ctx context.Context, pks int) error {
	ctx, cancel := context.WithTimeout(ctx, beginTimeout)
	defer cancel()
	var pipeline pgx.Batch
	statement := secureBatch
	if pks == noBatch {
		statement = secureStatement
	}
	t.queueBegin(&pipeline, statement)
	if pks > 0 {
		t.queueReserve(&pipeline, pks)
	}
	if err := t.send(ctx, &pipeline); err != nil {
		return fmt.Errorf("begin: %w", unavailable(err))
	}
	return nil
}

func (t *transaction) queueBegin(pipeline *pgx.Batch, statement string) {
	pipeline.Queue(beginStatement)
	pipeline.Queue(statement).QueryRow(t.checkSupport)
}

// queueReserve queues the statement that reserves pks.
func (t *transaction) queueReserve(pipeline *pgx.Batch, count int) {
	pipeline.Queue(reserveStatement, count).Query(func(rows pgx.Rows) error {
		pks, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		t.reserved = append(t.reserved, pks...)
		return err //nolint:wrapcheck // It is the error of send.
	})
}

// checkSupport checks that this program can use the schema, which a newer one may have migrated, and that the server
// accepts writes, and keeps the version of the keyset. It returns database.ErrNewer or ErrUnavailable.
func (t *transaction) checkSupport(row pgx.Row) error {
	var oldest int64
	var isReadOnly, synchronousCommit, minMessages, lockTimeout, idleTimeout, message string
	err := row.Scan(&oldest, &isReadOnly, &synchronousCommit, &minMessages, &lockTimeout, &idleTimeout, &message,
		&t.keysetVersion)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: table schema_support is empty", database.ErrUnavailable)
	case err != nil:
		return err //nolint:wrapcheck // It is the error of send.
	case oldest > t.schemaVersion:
		return fmt.Errorf(
			"%w: %w: its schema needs a program of schema version %d, this one has version %d; upgrade providerd",
			database.ErrUnavailable, database.ErrNewer, oldest, t.schemaVersion)
	case isReadOnly == "on":
		return fmt.Errorf("%w: the server is read-only", database.ErrUnavailable)
	default:
		return nil
	}
}
