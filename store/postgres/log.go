package postgres

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
)

const (
	// settleInterval is the time between two checks for open transactions.
	settleInterval = 50 * time.Millisecond
	// longTransaction is how long a transaction can be open before that is reported.
	longTransaction = 10 * time.Second
)

const selectInstance = "extract(epoch FROM pg_postmaster_start_time())::text"

// Instance returns when the server started, which no other server shares.
func (d *Database) Instance(tx *gorm.DB) (start string, err error) {
	if err := tx.Raw("SELECT " + selectInstance).Scan(&start).Error; err != nil {
		return "", fmt.Errorf("identify the server: %w", err)
	}
	return start, nil
}

// SettledEvent reads the last event, and then waits until every transaction that has an id has ended. All transactions
// that add events have an id before: see secureStatement and secureInsert. A commit is late if the server waits for a
// standby.
func (d *Database) SettledEvent(ctx context.Context, waiting func(transaction string)) (database.LogEnd, error) {
	reader := d.readers.GORM.WithContext(ctx)
	var start struct {
		database.LogEnd
		Xid string
	}
	// An event with a lower id, which is not visible yet, belongs to a transaction with an id that is lower than this one.
	err := reader.Raw("SELECT coalesce(max(id), 0) AS id, " + selectInstance + " AS instance, " +
		"pg_current_xact_id()::text AS xid FROM events").Scan(&start).Error
	end := start.LogEnd
	if err != nil {
		return end, fmt.Errorf("find the last event: %w", err)
	}
	report := time.After(longTransaction)
	for {
		var now struct {
			IsSettled bool
			Instance  string
		}
		err := reader.Raw("SELECT pg_snapshot_xmin(pg_current_snapshot()) > ?::text::xid8 AS is_settled, "+selectInstance+
			" AS instance", start.Xid).Scan(&now).Error
		if err != nil {
			return end, fmt.Errorf("find open transactions: %w", err)
		}
		if now.Instance != end.Instance {
			return end, fmt.Errorf("%w: another server has become the primary", database.ErrUnavailable)
		}
		if now.IsSettled {
			return end, nil
		}
		select {
		case <-time.After(settleInterval):
		case <-report:
			waiting(oldestTransaction(reader))
		case <-ctx.Done():
			return end, fmt.Errorf("wait for open transactions: %w", ctx.Err())
		}
	}
}

// selectOldest describes the oldest transaction with an id, in any database of the server.
const selectOldest = `SELECT text FROM (
	SELECT format('process %s of %s in database %s, since %s', pid, usename, datname, xact_start) AS text,
		age(backend_xid) AS age FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
	UNION ALL SELECT format('prepared transaction %L of %s in database %s, since %s', gid, owner, database, prepared),
		age(transaction) FROM pg_prepared_xacts) AS open ORDER BY age DESC LIMIT 1`

func oldestTransaction(reader *gorm.DB) string {
	var text string
	if err := reader.Raw(selectOldest).Scan(&text).Error; err != nil || text == "" {
		return "one that this role cannot see"
	}
	return text
}
