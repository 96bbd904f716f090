//go:build slow

package upgrade_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

const (
	addColumn   = "-- +goose Up\nALTER TABLE providers ADD COLUMN later text CHECK (kind = 'oauth2' OR later IS NULL);\n"
	addToBoth   = "-- +goose Up\nALTER TABLE providers ADD COLUMN later text;\n"
	changeKeys  = "UPDATE keyset SET version = CAST('changed' AS %s);\n"
	raiseOldest = "UPDATE schema_support SET oldest_level = 99999;\n"
)

// TestMigrations applies the migrations, and one that forgets a statement, to a database that has a record.
func TestMigrations(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	for _, test := range []struct{ database, last, want string }{
		{"sqlite", "", ""},
		{"sqlite", addColumn, "99999_last.sql does not change keyset.version"},
		{"sqlite", addToBoth + fmt.Sprintf(changeKeys, "blob"), "99999_last.sql adds a column that records of the other kind can have"},
		{"sqlite", addColumn + fmt.Sprintf(changeKeys, "blob"), ""},
		{"postgres", "", ""},
		{"postgres", addColumn + raiseOldest, "99999_last.sql does not change keyset.version"},
		{"postgres", addColumn + fmt.Sprintf(changeKeys, "bytea"), "99999_last.sql adds a column for programs that do not know it"},
		{"postgres", addColumn + fmt.Sprintf(changeKeys, "bytea") + raiseOldest, ""},
	} {
		dir := t.TempDir()
		processtest.Must(t, os.CopyFS(dir, os.DirFS(providerdtest.Path(t, "store/"+test.database+"/migrations"))))
		if test.last != "" {
			processtest.Must(t, os.WriteFile(filepath.Join(dir, "99999_last.sql"), []byte(test.last), 0o600))
		}
		driver, url, dialect := "sqlite3", filepath.Join(t.TempDir(), "new.db"), goose.DialectSQLite3
		if test.database == "postgres" {
			driver, url, dialect = "pgx", cluster.CreateDatabase(t), goose.DialectPostgres
		}
		db := processtest.Try(sql.Open(driver, url)).Must(t)
		provider := processtest.Try(goose.NewProvider(dialect, db, os.DirFS(dir))).Must(t)
		processtest.Equal(t, applyEach(t, db, provider, dialect, dir), test.want, "%s", test.database)
		processtest.Must(t, db.Close())
	}
}

// applyEach applies migrations, and returns what one has forgotten: to change the version of the keyset, so that
// programs check the schema before they insert; or, if it adds a column to the records, to keep it NULL in those of the
// other kind, or to refuse programs that do not know it. SQLite refuses these anyway.
func applyEach(t *testing.T, db *sql.DB, provider *goose.Provider, dialect goose.Dialect, dir string) string {
	var version []byte
	var columns []string
	for number, source := range provider.ListSources() {
		processtest.Try(provider.UpByOne(t.Context())).Must(t)
		if number == 0 {
			insertOld(t, db, map[goose.Dialect]string{goose.DialectSQLite3: "0", goose.DialectPostgres: "now()"}[dialect])
		}
		var newVersion []byte
		processtest.Must(t, db.QueryRowContext(t.Context(), "SELECT version FROM keyset").Scan(&newVersion))
		// PostgreSQL refuses a text that it has prepared for other columns.
		rows := processtest.Try(db.QueryContext(t.Context(), fmt.Sprintf("SELECT * FROM providers LIMIT %d", number))).Must(t)
		newColumns, err := rows.Columns()
		processtest.Must(t, err, rows.Err(), rows.Close())
		if bytes.Equal(newVersion, version) {
			return filepath.Base(source.Path) + " does not change keyset.version"
		}
		text := processtest.Try(os.ReadFile(filepath.Join(dir, source.Path))).Must(t)
		if isColumnAdded := len(newColumns) > len(columns); isColumnAdded && !bytes.Contains(text, []byte("kind")) {
			return filepath.Base(source.Path) + " adds a column that records of the other kind can have"
		}
		oldest := source.Version
		if dialect == goose.DialectPostgres && len(newColumns) > len(columns) {
			processtest.Must(t, db.QueryRowContext(t.Context(), "SELECT oldest_level FROM schema_support").Scan(&oldest))
		}
		if oldest != source.Version {
			return filepath.Base(source.Path) + " adds a column for programs that do not know it"
		}
		version, columns = newVersion, newColumns
	}
	return ""
}

func insertOld(t *testing.T, db *sql.DB, at string) {
	for _, statement := range []string{
		"INSERT INTO keyset (pk, version, database_id, secret_keys, digest_key) VALUES (1, $1, $1, $1, $1)",
		strings.ReplaceAll(`INSERT INTO providers (secret, uid, authorization_flow, kind, name, created_at, created_by, request_id,
			remote_address, generated, client_id, property_mappings, client_type, access_code_validity, access_token_validity,
			refresh_token_validity, include_claims_in_id_token, redirect_uris, sub_mode, issuer_mode, jwks_sources)
			VALUES ($1, UUID, UUID, 'oauth2', 'old', TIME, 'ci', '', '', 0, 'old', '[]', 'public', '', '', '', true, '', 'user_id', 'global', '[]')`,
			"UUID", "'019c1310-e47b-7a35-9d2c-5a6b1f0c4e21'"),
	} {
		processtest.Try(db.ExecContext(t.Context(), strings.Replace(statement, "TIME", at, 1), []byte("old"))).Must(t)
	}
}
