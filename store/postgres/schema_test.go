//go:build slow

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// What does not keep creates single, complete and in the log is refused by servers, and described. Anything else is not.
func TestSchemaFaults(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	migrated := databaseOf(t, newMigrated(t, cluster))
	const dropIndex = "DROP INDEX providers_idempotency_key; "
	const noKeys = "a valid unique index on providers (created_by, kind, idempotency_key) is missing"
	const noClientIDs, noUIDs = "a valid unique index on providers (client_id) is missing", "a valid unique index on providers (uid) is missing"
	const trigger = `trigger "providers_created" is missing, disabled or changed`
	const pk, check = `the default of "providers"."pk" is missing or changed`, `a CHECK of "providers" for the kind oauth2 is missing or changed`
	for name, test := range map[string]struct{ statement, want string }{
		"nothing":             {"", ""},
		"index for reports":   {"CREATE INDEX reports ON providers (name)", ""},
		"other table":         {"CREATE TABLE reports (pk integer PRIMARY KEY)", ""},
		"added column":        {"ALTER TABLE providers ADD COLUMN owner text", ""},
		"schema of the role":  {"CREATE SCHEMA AUTHORIZATION CURRENT_USER", ""},
		"missing index":       {dropIndex, noKeys},
		"index of all rows":   {dropIndex + "CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key)", noKeys},
		"index of no row":     {dropIndex + "CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key) WHERE idempotency_key = 'x'", noKeys},
		"included column":     {dropIndex + "CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind) INCLUDE (idempotency_key) WHERE idempotency_key IS NOT NULL", noKeys},
		"expression":          {dropIndex + "CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, lower(idempotency_key)) WHERE idempotency_key IS NOT NULL", noKeys},
		"equal nulls":         {dropIndex + "CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key) NULLS NOT DISTINCT WHERE idempotency_key IS NOT NULL", noKeys},
		"not unique":          {dropIndex + "CREATE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key) WHERE idempotency_key IS NOT NULL", noKeys},
		"same index":          {dropIndex + "CREATE UNIQUE INDEX other ON providers (created_by, kind, idempotency_key) WHERE (idempotency_key IS NOT NULL)", ""},
		"invalid index":       {"UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'providers_idempotency_key'::regclass", noKeys},
		"unfinished index":    {"CREATE UNIQUE INDEX providers_uid_key_ccnew ON providers (uid); UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'providers_uid_key_ccnew'::regclass", ""},
		"deferred constraint": {"ALTER TABLE providers DROP CONSTRAINT providers_client_id_key; ALTER TABLE providers ADD CONSTRAINT providers_client_id_key UNIQUE (client_id) DEFERRABLE", noClientIDs},
		"missing constraint":  {"ALTER TABLE providers DROP CONSTRAINT providers_client_id_key", noClientIDs},
		"uids":                {"ALTER TABLE providers DROP CONSTRAINT providers_uid_key", noUIDs},
		"unlogged table":      {"ALTER TABLE tokens SET UNLOGGED", `table "tokens" is unlogged`},
		"always":              {"ALTER TABLE providers ENABLE ALWAYS TRIGGER providers_created", trigger},
		"other schema":        {"ALTER FUNCTION add_created_events SET search_path = other, pg_temp", trigger},
		"any schema":          {"ALTER FUNCTION add_created_events RESET ALL", trigger},
		"disabled trigger":    {"ALTER TABLE providers DISABLE TRIGGER providers_created", trigger},
		"replicated rows":     {"ALTER TABLE providers ENABLE REPLICA TRIGGER providers_created", trigger},
		"missing trigger":     {"DROP TRIGGER providers_created ON providers", trigger},
		"empty function":      {"CREATE OR REPLACE FUNCTION add_created_events() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'", trigger},
		"trigger of rows":     {"DROP TRIGGER providers_created ON providers; CREATE TRIGGER providers_created AFTER INSERT ON providers FOR EACH ROW EXECUTE FUNCTION add_created_events()", trigger},
		"no default":          {"ALTER TABLE providers ALTER pk DROP DEFAULT", pk},
		"other default":       {"ALTER TABLE providers ALTER pk SET DEFAULT 7", pk},
		"cycling sequence":    {"ALTER SEQUENCE providers_pk_seq CYCLE", pk},
		"renamed sequence":    {"ALTER SEQUENCE providers_pk_seq RENAME TO other", ""},
		"missing CHECK":       {"ALTER TABLE providers DROP CONSTRAINT providers_check", check},
		"weaker CHECK":        {"ALTER TABLE providers DROP CONSTRAINT providers_check; ALTER TABLE providers ADD CHECK (kind <> 'oauth2' OR client_id IS NOT NULL)", check},
		"unproved CHECK":      {"UPDATE pg_constraint SET convalidated = false WHERE conname = 'providers_check'", check},
		"newer schema":        {"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true); " + dropIndex, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := cluster.CopyDatabase(t, migrated)
			cluster.Exec(t, databaseOf(t, url), test.statement)
			_, viewed := inspect(t, url).Check(t.Context())
			opened, starting := storetest.CreatePostgres(t.Context(), url, newKeyset(t))
			if starting == nil {
				starting = opened.Close()
			}
			for what, err := range map[string]error{"doctor": viewed, "start": starting} {
				if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, database.ErrUnavailable) ||
					!strings.HasSuffix(err.Error(), ": "+test.want+"; undo what another program has changed")) {
					t.Errorf("%s: error is %v, want %q", what, err, test.want)
				}
			}
		})
	}
}

// Readiness fails while an index is missing.
func TestReadinessNeedsIndexes(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	cluster.Exec(t, databaseOf(t, url), "DROP INDEX providers_idempotency_key")
	err := opened.Ready(t.Context())
	processtest.IsError(t, err, store.ErrUnavailable, "a valid unique index on providers (created_by, kind, idempotency_key) is missing")
	cluster.Exec(t, databaseOf(t, url), "CREATE UNIQUE INDEX ON providers (created_by, kind, idempotency_key) WHERE idempotency_key IS NOT NULL")
	awaitReady(t, opened)
}

// A server starts while the standby is missing, and is not ready.
func TestStartWithoutStandby(t *testing.T) {
	t.Parallel()
	r, keyset := newReplicated(t, ""), newKeyset(t)
	createEach(t, openStore(t, r.url, keyset), "before")
	r.standby.Stop(t)
	processtest.IsError(t, openStore(t, r.url, keyset).Ready(t.Context()), store.ErrUnavailable)
}

// While indexes are rebuilt under load, which leaves invalid ones at times, the schema has no faults.
func TestReindexIsNoFault(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened, view := openStore(t, url, newKeyset(t)), inspect(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				createEach(t, opened, fmt.Sprint(i, "/", n))
			}
		})
	}
	checks := 0
	group.Go(func() {
		for ; ctx.Err() == nil; checks++ {
			if _, err := view.Check(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	const rounds = 10
	for range rounds {
		cluster.Exec(t, databaseOf(t, url), "REINDEX TABLE CONCURRENTLY providers")
	}
	cancel()
	group.Wait()
	if checks < rounds {
		t.Errorf("%d checks, want at least %d", checks, rounds)
	}
}

// Columns that somebody adds, generated ones too, change neither creates, reads, readiness nor versions.
func TestAddedColumns(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	createEach(t, opened, "before")
	record := storetest.Collect(t, opened.Providers.List(t.Context(), store.Filter{}, 0))[0].Common()
	processtest.Try(opened.Applications.Create(t.Context(), records.Application{Name: "a", Slug: "a", ProviderPK: &record.PK})).Must(t)
	versions := func() map[int64]string {
		return processtest.Try(opened.Providers.Versions(t.Context(), []int64{record.PK})).Must(t)
	}
	want := versions()
	cluster.Exec(t, databaseOf(t, url), "ALTER TABLE applications ADD COLUMN note json",
		"ALTER TABLE providers ADD COLUMN note json, ADD COLUMN folded text GENERATED ALWAYS AS (lower(name)) STORED",
		"UPDATE providers SET note = '{}'")
	createEach(t, opened, "after")
	processtest.Equal(t, versions(), want, "versions")
	if read, err := opened.Providers.Get(t.Context(), record.PK); err != nil || read.Common().Application.Slug != "a" {
		t.Errorf("read %v, %v", read, err)
	}
	awaitReady(t, opened)
}

func tablesOf(t *testing.T, url string) []string {
	t.Helper()
	return query[[]string](t, inspect(t, url), "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
}

// requireForeign checks that a database is refused because of a table, and left unchanged.
func requireForeign(t *testing.T, url, table string, err error) {
	t.Helper()
	processtest.IsError(t, err, database.ErrForeign, `"`+table+`"`)
	processtest.Equal(t, tablesOf(t, url), []string{table}, "tables")
}

// If another program uses the name of any of providerd's tables, no tables are created.
func TestTakenNamesAreRefused(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	reference := cluster.CreateDatabase(t)
	create(t, reference)
	for _, table := range tablesOf(t, reference) {
		if strings.HasPrefix(table, "goose_") || table == "schema_support" {
			continue
		}
		url := cluster.CreateDatabase(t)
		cluster.Exec(t, databaseOf(t, url), "CREATE TABLE "+table+" (id integer)")
		requireForeign(t, url, table, openError(t, url))
		_, err := postgres.Open(t.Context(), parse(t, url), slog.New(slog.DiscardHandler))
		requireForeign(t, url, table, err)
	}
}

// Create tolerates other tables, and CreateAlone does not. Both ignore tables of extensions, of other schemas and of an
// interrupted first start.
func TestOtherTables(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	const begun = `CREATE TABLE goose_db_version (id integer PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
		version_id bigint NOT NULL, is_applied boolean NOT NULL, tstamp timestamp NOT NULL DEFAULT now());
		INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, true)`
	for title, test := range map[string]struct{ statements, other string }{
		"table":      {"CREATE TABLE foo (id integer)", "foo"},
		"partitions": {"CREATE TABLE foo (id integer) PARTITION BY HASH (id)", "foo"},
		"extension":  {"CREATE VIEW foo AS SELECT 1; ALTER EXTENSION plpgsql ADD VIEW foo", ""},
		"schema":     {"CREATE SCHEMA other; CREATE TABLE other.tokens (id integer)", ""},
		"begun":      {begun, ""},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			url := cluster.CreateDatabase(t)
			cluster.Exec(t, databaseOf(t, url), test.statements)
			err := createAlone(t, url)
			if test.other != "" {
				requireForeign(t, url, test.other, err)
			} else if err != nil {
				t.Error(err)
			}
			processtest.CheckAs(t, openError(t, url), "Create")
			processtest.CheckAs(t, createAlone(t, url), "over providerd's tables")
		})
	}
}

// A missing privilege and an exhausted sequence make the database unavailable, with advice. Once they are fixed,
// creates are stored again.
func TestMissingPrivilegesAndSequences(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	name := databaseOf(t, url)
	cluster.Exec(t, name, "CREATE ROLE server LOGIN PASSWORD 'server'", "GRANT CREATE ON SCHEMA public TO server")
	opened := openStore(t, with(url, "user=server&password=server"), newKeyset(t))
	for _, test := range []struct{ damage, repair, says string }{
		{
			"REVOKE INSERT ON providers FROM server",
			"GRANT INSERT ON providers TO server",
			"(SQLSTATE 42501); grant the role in the URL SELECT on it, and for a server INSERT, UPDATE and DELETE, too",
		},
		{
			"ALTER SEQUENCE providers_pk_seq MAXVALUE 1000 RESTART 1000; SELECT nextval('providers_pk_seq')",
			"ALTER SEQUENCE providers_pk_seq NO MAXVALUE",
			"(SQLSTATE 2200H); its MAXVALUE",
		},
	} {
		cluster.Exec(t, name, test.damage)
		_, err := keyedCreate(t.Context(), opened, test.repair)
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error is %v, want ErrUnavailable with %q", test.damage, err, test.says)
		}
		cluster.Exec(t, name, test.repair)
		createEach(t, opened, test.repair)
	}
	cluster.Exec(t, name, "REVOKE INSERT ON providers FROM server")
	const says = "providers (SQLSTATE 42501); grant the role in the URL SELECT on it, and for a server"
	processtest.WaitUntil(t, "readiness reports the missing privilege", func() bool {
		err := opened.Ready(t.Context())
		return errors.Is(err, store.ErrUnavailable) && strings.Contains(err.Error(), says)
	})
}
