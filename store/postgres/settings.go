package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/database"
)

// minServerVersion is the oldest PostgreSQL that this package is tested with.
const minServerVersion = 15_00_00

const selectSettings = `SELECT current_setting('server_version_num'), current_setting('fsync'),
	current_setting('full_page_writes'), current_setting('synchronous_commit'),
	current_setting('transaction_read_only')`

// settings are what decides whether a server keeps what it acknowledges, as it writes them.
type settings struct {
	version, fsync, fullPageWrites, synchronousCommit, readOnly string
}

// readSettings returns database.ErrUnavailable.
func readSettings(ctx context.Context, conn *pgx.Conn) (settings, error) {
	// A query of pgx's own refuses a database whose encoding or strings are not the usual ones.
	results, err := conn.PgConn().Exec(ctx, selectSettings).ReadAll()
	if err != nil {
		return settings{}, fmt.Errorf("read the settings of the database: %w", unavailable(err))
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 5 {
		return settings{}, fmt.Errorf("%w: the server does not tell its settings", database.ErrUnavailable)
	}
	row := results[0].Rows[0]
	return settings{
		version: string(row[0]), fsync: string(row[1]), fullPageWrites: string(row[2]), synchronousCommit: string(row[3]),
		readOnly: string(row[4]),
	}, nil
}

// faults are why the server is refused, each a database.ErrUnsafe or ErrUnavailable.
func (s settings) faults() (faults []error) {
	if number, err := strconv.Atoi(s.version); err != nil || number < minServerVersion {
		faults = append(faults, fmt.Errorf("%w: the server is older than PostgreSQL 15", database.ErrUnsafe))
	}
	if s.fsync != "on" {
		faults = append(faults, unsafeSetting("fsync", s.fsync))
	}
	if s.fullPageWrites != "on" {
		faults = append(faults, unsafeSetting("full_page_writes", s.fullPageWrites))
	}
	if s.synchronousCommit == "off" || s.synchronousCommit == "local" {
		faults = append(faults, unsafeSetting("synchronous_commit", s.synchronousCommit))
	}
	if s.readOnly != "off" {
		faults = append(faults, fmt.Errorf("%w: the server is read-only; name the primary, or all servers, in --database",
			database.ErrUnavailable))
	}
	return faults
}

func unsafeSetting(name, value string) error {
	return fmt.Errorf("%w: its setting %s is %q, with which it could lose what it has acknowledged; set it to on",
		database.ErrUnsafe, name, value)
}
