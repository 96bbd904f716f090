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
	current_setting('transaction_read_only'), current_setting('server_encoding'),
	current_setting('bytea_output')`

// settings are the values of the settings that decide whether a server keeps what it acknowledges, as it was.
type settings struct {
	version, fsync, fullPageWrites, synchronousCommit, readOnly, encoding, byteaOutput string
	// readsText is set if the connection reads values as text.
	readsText bool
}

// readSettings reads the settings of a server. It returns database.ErrUnavailable if that fails.
func readSettings(ctx context.Context, conn *pgx.Conn) (settings, error) {
	// pgx's Query refuses a database with unusual settings of encoding or strings.
	results, err := conn.PgConn().Exec(ctx, selectSettings).ReadAll()
	if err != nil {
		return settings{}, fmt.Errorf("read the settings of the database: %w", unavailable(err))
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 7 {
		return settings{}, fmt.Errorf("%w: the server did not return its settings", database.ErrUnavailable)
	}
	row := results[0].Rows[0]
	return settings{
		version: string(row[0]), fsync: string(row[1]), fullPageWrites: string(row[2]), synchronousCommit: string(row[3]),
		readOnly: string(row[4]), encoding: string(row[5]), byteaOutput: string(row[6]),
		readsText: !preparesStatements(conn),
	}, nil
}

// faults returns the reasons to refuse the server, each a database.ErrUnsafe or ErrUnavailable.
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
	if s.encoding != "UTF8" {
		faults = append(faults, fmt.Errorf("%w: server_encoding is %q, which cannot store every character; "+
			"create a database with ENCODING 'UTF8'", database.ErrUnsafe, s.encoding))
	}
	if s.readsText && s.byteaOutput != "hex" {
		faults = append(faults, fmt.Errorf("%w: setting bytea_output is %q, which default_query_exec_mode does not support; "+
			"set it to hex for the role of the URL", database.ErrUnsafe, s.byteaOutput))
	}
	if s.readOnly != "off" {
		faults = append(faults, fmt.Errorf("%w: the server is read-only; name the primary, or all servers, in --database",
			database.ErrUnavailable))
	}
	return faults
}

func unsafeSetting(name, value string) error {
	return fmt.Errorf("%w: setting %s is %q, which could lose acknowledged creates; set it to on",
		database.ErrUnsafe, name, value)
}
