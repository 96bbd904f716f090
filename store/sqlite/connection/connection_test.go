package connection_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite/connection"
	"example.com/providerd/store/storetest/processtest"
)

// The header shows what may be opened before SQLite opens the file: nothing, and a database of providerd, unless its
// tables are in a WAL that is missing.
func TestReadHeader(t *testing.T) {
	t.Parallel()
	const own, table = "PRAGMA application_id = 0x70766464;", "CREATE TABLE t (a);"
	for statements, want := range map[string]struct {
		header connection.Header
		err    error
	}{
		"":                                   {connection.Header{IsBlank: true, IsOnePage: true}, nil},
		own + table:                          {connection.Header{}, nil},
		own:                                  {connection.Header{IsOnePage: true}, nil},
		own + "PRAGMA journal_mode = WAL;":   {connection.Header{IsOnePage: true}, database.ErrUnavailable},
		"PRAGMA application_id = 7;" + table: {connection.Header{}, database.ErrForeign},
	} {
		path := filepath.Join(t.TempDir(), "test.db")
		db := processtest.Try(connection.OpenDSN(path, "mode=rwc")).Must(t)
		processtest.Try(db.ExecContext(t.Context(), statements)).Must(t)
		processtest.Must(t, db.Close())
		header, err := readHeader(t, path)
		processtest.IsError(t, err, want.err)
		if want.err == nil {
			processtest.Equal(t, header, want.header, "%q", statements)
		}
	}
	text := filepath.Join(t.TempDir(), "text")
	processtest.Must(t, os.WriteFile(text, []byte("no database"), 0o600))
	_, err := readHeader(t, text)
	processtest.IsError(t, err, database.ErrCorrupt)
	_, err = connection.SizeOf(strings.Repeat("n", 256))
	processtest.IsError(t, err, syscall.ENAMETOOLONG)
}

func readHeader(t *testing.T, path string) (connection.Header, error) {
	t.Helper()
	file := processtest.Try(os.OpenFile(path, os.O_RDONLY|os.O_CREATE, 0o600)).Must(t)
	defer func() { _ = file.Close() }()
	return connection.ReadHeader(file)
}

// A statement is prepared once, and an error of one leaves the others usable.
func TestStatements(t *testing.T) {
	t.Parallel()
	pool := processtest.Try(connection.OpenWith(filepath.Join(t.TempDir(), "test.db"), "mode=rwc")).Must(t)
	statements := connection.Statements{Conn: processtest.Try(pool.Conn(t.Context())).Must(t)}
	processtest.Must(t, statements.Exec(t.Context(), "CREATE TABLE t (a INTEGER PRIMARY KEY)"))
	const insert = "INSERT INTO t VALUES (1)"
	processtest.Must(t, statements.Exec(t.Context(), insert))
	err := connection.InsertError(statements.Exec(t.Context(), insert))
	processtest.IsError(t, err, database.ErrInsertApart, "UNIQUE")
	processtest.Must(t, statements.Exec(t.Context(), "DELETE FROM t"), statements.Exec(t.Context(), insert))
	processtest.Must(t, statements.Close(), pool.Close())
}
