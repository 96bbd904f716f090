package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const (
	// insertTimeout limits an attempt of an INSERT, with its commit.
	insertTimeout = 1500 * time.Millisecond
	// apartTimeout limits the wait for the lock of a row in a part of a split batch.
	apartTimeout = 10 * time.Millisecond
	// leastInsertTime is what a wait for a lock leaves of insertTimeout, so that it does not make the outcome unknown.
	leastInsertTime = 500 * time.Millisecond
)

// secureInsert is secureStatement for an INSERT, which writes and so needs no message. That the schema is supported
// follows from the version of the keyset, which migrations change. The transaction gets its id before it generates pks,
// because SettledEvent waits for transactions with an id.
const secureInsert = `SELECT ` + secureSettings + `, set_config('lock_timeout', $1, true), pg_current_xact_id()::text`

// Insert inserts rows in one transaction, which travels in one message. It retries until the message was sent, and
// until lockTimeout if it cannot get the lock of a table.
func (d *Database) Insert(ctx context.Context, rows database.Insertion) (pks map[uuid.UUID]int64, err error) {
	ctx, cancel := reserving(ctx, leastInsertTime)
	defer cancel()
	begun := time.Now()
	err = retry(ctx, func() (again bool, err error) {
		pks, again, err = d.tryInsert(ctx, rows)
		return again || mayWait(rows, err) && time.Since(begun) < lockTimeout, err
	})
	if errors.Is(err, database.ErrUnavailable) || errors.Is(err, database.ErrOutcomeUnknown) {
		d.isInsertFailing.Store(true)
	}
	return pks, err
}

// mayWait reports whether an INSERT could not get the lock of a table, and so may try again. If it could not get that
// of a row, fewer rows should be inserted; those of a split batch have waited long enough.
func mayWait(rows database.Insertion, err error) bool {
	return !rows.IsApart && errors.Is(err, database.ErrLocked) && !errors.Is(err, database.ErrInsertApart)
}

// tryInsert is one attempt of Insert, and reports whether another one may succeed.
func (d *Database) tryInsert(
	ctx context.Context, rows database.Insertion,
) (pks map[uuid.UUID]int64, again bool, err error) {
	tx, err := d.connection(ctx, d.writers)
	if err != nil {
		return nil, !errors.Is(err, database.ErrNewer), err
	}
	insert, err := d.insertStatement(tx.native.TypeMap(), rows)
	if err != nil {
		tx.release()
		return nil, false, err
	}
	deadline, _ := ctx.Deadline()
	limit := min(insertTimeout, max(time.Until(deadline), time.Millisecond)+leastInsertTime)
	lockTime := limit - leastInsertTime
	if rows.IsApart {
		lockTime = min(lockTime, apartTimeout)
	}
	secure := statement{secureInsert, [][]byte{strconv.AppendInt(nil, lockTime.Milliseconds(), 10)}}
	results, err := tx.commit(limit, statement{text: beginStatement}, secure, insert)
	switch {
	case errors.Is(err, database.ErrOutcomeUnknown):
		return nil, false, err
	case takesUsedID(err):
		tx.rollBack(ctx)
		if err := d.Prepare(ctx); err != nil {
			return nil, false, err
		}
		return nil, true, unavailable(err)
	case err != nil:
		d.fail(ctx, tx, err)
		classified := insertError(err)
		return nil, isRetryable(err) && !errors.Is(classified, database.ErrInsertApart), classified
	}
	pks, err = readPKs(results[2])
	return pks, false, err
}

// takesUsedID reports whether the trigger that adds an event got an id that is in use.
func takesUsedID(err error) bool {
	native, ok := errors.AsType[*pgconn.PgError](err)
	return ok && native.Code == uniqueViolation && native.TableName == "events"
}

// insertError classifies the error of an INSERT that stored nothing: database.ErrInsertApart unless any INSERT would
// fail. The server says whether it waited for a row's unique value: in an index, not in the trigger that adds an event.
func insertError(err error) error {
	native, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return classify(err)
	}
	isInIndex := native.Where != "" && !strings.Contains(native.Where, "PL/pgSQL")
	switch {
	case native.Code == deadlockDetected, native.Code == lockNotAvailable && isInIndex:
		return fmt.Errorf("%w: %w", database.ErrInsertApart, unavailable(err))
	case isUnavailableCode(native.Code):
		return unavailable(err)
	default:
		return fmt.Errorf("%w: %w", database.ErrInsertApart, classify(err))
	}
}

// columnType is the type of a column, and that of arrays of its values.
type columnType struct {
	Column, Name string
	Value, Array uint32
}

// readColumnTypes returns the types of the columns of the table of providers.
func readColumnTypes(ctx context.Context, db *gorm.DB) (map[string]columnType, error) {
	var columns []columnType
	err := db.WithContext(ctx).Raw(`SELECT attname AS column, atttypid::regtype::text AS name, atttypid AS value,
		typarray AS array FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
		WHERE attrelid = to_regclass('providers') AND attnum > 0`).Scan(&columns).Error
	if err != nil {
		return nil, fmt.Errorf("read the types of columns: %w", unavailable(err))
	}
	types := map[string]columnType{}
	for _, column := range columns {
		types[column.Column] = column
	}
	return types, nil
}

// insertStatement returns the INSERT. Several rows are arrays, one for each column, so that one text serves any number;
// unnest in FROM would first store all values. It inserts nothing if the server is unsafe; the lookup reports that.
func (d *Database) insertStatement(types *pgtype.Map, rows database.Insertion) (insert statement, err error) {
	selected, values := make([]string, len(rows.Columns)), make(pgtype.FlatArray[any], len(rows.Rows))
	insert.values = make([][]byte, len(rows.Columns), len(rows.Columns)+1)
	buffer := make([]byte, 0, len(rows.Rows)<<10) // A row usually needs less than 1 KiB.
	for n, column := range rows.Columns {
		for i, row := range rows.Rows {
			values[i] = row[n]
			if uid, ok := row[n].(uuid.UUID); ok {
				// The driver would format and parse it.
				values[i] = pgtype.UUID{Bytes: uid, Valid: true}
			}
		}
		kind, place := d.columns[column], "$"+strconv.Itoa(n+1)+"::"
		id, value := kind.Array, any(values)
		selected[n] = "unnest(" + place + kind.Name + "[])"
		if len(values) == 1 {
			id, value, selected[n] = kind.Value, values[0], place+kind.Name
		}
		encoded, err := types.Encode(id, pgtype.BinaryFormatCode, value, buffer)
		if err != nil {
			return insert, fmt.Errorf("write values of %s: %w", column, err)
		}
		if encoded != nil {
			insert.values[n], buffer = encoded[len(buffer):], encoded
		}
	}
	insert.text = "INSERT INTO " + rows.Table + " (" + strings.Join(rows.Columns, ", ") + ") SELECT " +
		strings.Join(selected, ", ") + " WHERE (SELECT version FROM keyset) = $" + strconv.Itoa(len(selected)+1) +
		" AND " + unsafeSettings + " = '' ON CONFLICT DO NOTHING RETURNING uid, pk"
	insert.values = append(insert.values, rows.KeysetVersion)
	return insert, nil
}

func readPKs(result *pgconn.Result) (map[uuid.UUID]int64, error) {
	pks := make(map[uuid.UUID]int64, len(result.Rows))
	for _, row := range result.Rows {
		uid, err := uuid.ParseBytes(row[0])
		if err == nil {
			pks[uid], err = strconv.ParseInt(string(row[1]), 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: read pks: %w", database.ErrOutcomeUnknown, err)
		}
	}
	return pks, nil
}
