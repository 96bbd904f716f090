//go:build slow

package postgres_test

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// The catalog has exactly the objects that the migrations create.
func TestCatalog(t *testing.T) {
	t.Parallel()
	objects, err := inspect(t, newMigrated(t, postgrestest.NewCluster(t))).Objects(t.Context())
	processtest.Must(t, err)
	catalog := ""
	for _, name := range objects.Names() {
		catalog += name + "\t" + objects[name] + "\n"
	}
	if os.Getenv("UPDATE") != "" {
		processtest.Must(t, os.WriteFile("catalog.txt", []byte(catalog), 0o600))
	} else if want, err := os.ReadFile("catalog.txt"); err != nil || catalog != string(want) {
		t.Error("the objects differ from catalog.txt; with UPDATE=1, this test writes it")
	}
}

func TestDrift(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	migrated := databaseOf(t, newMigrated(t, cluster))
	for name, test := range map[string]struct{ statement, want string }{
		"nothing":             {"", ""},
		"index for reports":   {"CREATE INDEX reports ON providers (name)", ""},
		"other table":         {"CREATE TABLE reports (pk integer PRIMARY KEY)", ""},
		"missing index":       {"DROP INDEX providers_idempotency_key", `index "providers_idempotency_key" is missing`},
		"index of all rows":   {"DROP INDEX providers_idempotency_key; CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key)", `index "providers_idempotency_key" was changed`},
		"index of no row":     {"DROP INDEX providers_idempotency_key; CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key) WHERE idempotency_key = 'x'", `index "providers_idempotency_key" was changed`},
		"included column":     {"DROP INDEX providers_idempotency_key; CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind) INCLUDE (idempotency_key) WHERE idempotency_key IS NOT NULL", `index "providers_idempotency_key" was changed`},
		"equal nulls":         {"DROP INDEX providers_idempotency_key; CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key) NULLS NOT DISTINCT WHERE idempotency_key IS NOT NULL", `index "providers_idempotency_key" was changed`},
		"same index":          {"DROP INDEX providers_idempotency_key; CREATE UNIQUE INDEX providers_idempotency_key ON providers (created_by, kind, idempotency_key) WHERE (idempotency_key IS NOT NULL)", ""},
		"unfinished index":    {"CREATE UNIQUE INDEX tokens_digest_key_ccnew ON tokens (digest); UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'tokens_digest_key_ccnew'::regclass", ""},
		"deferred constraint": {"ALTER TABLE providers DROP CONSTRAINT providers_client_id_key; ALTER TABLE providers ADD CONSTRAINT providers_client_id_key UNIQUE (client_id) DEFERRABLE", `constraint "providers_client_id_key" of "providers" was changed`},
		"unproved constraint": {"ALTER TABLE keyset DROP CONSTRAINT keyset_pk_check; ALTER TABLE keyset ADD CONSTRAINT keyset_pk_check CHECK (pk = 1) NOT VALID", `constraint "keyset_pk_check" of "keyset" was changed`},
		"other check":         {"ALTER TABLE keyset DROP CONSTRAINT keyset_pk_check; ALTER TABLE keyset ADD CONSTRAINT keyset_pk_check CHECK (pk = 2)", `constraint "keyset_pk_check" of "keyset" was changed`},
		"cascade":             {"ALTER TABLE backchannels DROP CONSTRAINT backchannels_provider_pk_fkey; ALTER TABLE backchannels ADD CONSTRAINT backchannels_provider_pk_fkey FOREIGN KEY (provider_pk) REFERENCES providers (pk) ON DELETE CASCADE", `constraint "backchannels_provider_pk_fkey" of "backchannels" was changed`},
		"no foreign keys":     {"ALTER TABLE backchannels DISABLE TRIGGER ALL", `table "backchannels" was changed`},
		"inherited table":     {"CREATE TABLE more () INHERITS (providers)", `table "providers" was changed`},
		"default":             {"ALTER TABLE tokens ALTER COLUMN prefix SET DEFAULT ''", `column "tokens"."prefix" was changed`},
		"identity":            {"ALTER TABLE tokens ALTER COLUMN id SET GENERATED ALWAYS", `column "tokens"."id" was changed`},
		"last pk":             {"ALTER SEQUENCE providers_pk_seq MAXVALUE 3", `sequence "providers_pk_seq" was changed`},
		"schema of the role":  {"CREATE SCHEMA AUTHORIZATION CURRENT_USER", ""},
		"unique index":        {"CREATE UNIQUE INDEX names ON providers (name)", `index "names" was added`},
		"missing table":       {"DROP TABLE events", `column "events"."at" is missing`},
		"unlogged table":      {"ALTER TABLE tokens SET UNLOGGED", `table "tokens" was changed`},
		"row security":        {"ALTER TABLE tokens ENABLE ROW LEVEL SECURITY", `table "tokens" was changed`},
		"missing column":      {"ALTER TABLE tokens DROP COLUMN prefix", `column "tokens"."prefix" is missing`},
		"column of any value": {"ALTER TABLE tokens ALTER COLUMN prefix DROP NOT NULL", `column "tokens"."prefix" was changed`},
		"other collation":     {`ALTER TABLE providers ALTER COLUMN created_by TYPE text COLLATE "POSIX"`, `column "providers"."created_by" was changed`},
		"added column":        {"ALTER TABLE tokens ADD COLUMN owner text", `column "tokens"."owner" was added`},
		"missing constraint":  {"ALTER TABLE providers DROP CONSTRAINT providers_client_id_key", `constraint "providers_client_id_key" of "providers" is missing`},
		"added constraint":    {"ALTER TABLE tokens ADD CHECK (length(name) < 9)", `constraint "tokens_name_check" of "tokens" was added`},
		"cycling sequence":    {"ALTER SEQUENCE providers_pk_seq CYCLE", `sequence "providers_pk_seq" was changed`},
		"trigger": {`CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
			CREATE TRIGGER forgetting BEFORE INSERT ON providers FOR EACH ROW EXECUTE FUNCTION forget()`, `trigger "forgetting" of "providers" was added`},
		"disabled trigger": {"ALTER TABLE providers DISABLE TRIGGER providers_created", `trigger "providers_created" of "providers" was changed`},
		"rule":             {"CREATE RULE forgetting AS ON INSERT TO providers DO INSTEAD NOTHING", `rule "forgetting" of "providers" was added`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := cluster.CopyDatabase(t, migrated)
			cluster.Exec(t, databaseOf(t, url), test.statement)
			drift, err := inspect(t, url).Drift(t.Context())
			processtest.Must(t, err)
			if test.want == "" && len(drift) > 0 || test.want != "" && !slices.Contains(drift, test.want) {
				t.Errorf("drift is %q, want %q", drift, test.want)
			}
		})
	}
}

// Columns that somebody adds, generated ones too, change neither creates, reads, readiness nor versions.
func TestAddedColumns(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	createEach(t, opened, "before")
	record := storetest.Collect(t, opened.Providers(t.Context(), store.Filter{}, 0))[0].Common()
	_, err := opened.CreateApplication(t.Context(), store.Application{Name: "a", Slug: "a", ProviderPK: &record.PK})
	processtest.Must(t, err)
	versions := func() map[int64]string {
		found, err := opened.Versions(t.Context(), []int64{record.PK})
		processtest.Must(t, err)
		return found
	}
	want := versions()
	cluster.Exec(t, databaseOf(t, url), "ALTER TABLE applications ADD COLUMN note json",
		"ALTER TABLE providers ADD COLUMN note json, ADD COLUMN folded text GENERATED ALWAYS AS (lower(name)) STORED",
		"UPDATE providers SET note = '{}'")
	createEach(t, opened, "after")
	if found := versions(); !maps.Equal(found, want) {
		t.Errorf("versions are %x, want %x", found, want)
	}
	if read, err := opened.Provider(t.Context(), record.PK); err != nil || read.Common().Application.Slug != "a" {
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
	if !errors.Is(err, database.ErrForeign) || !strings.Contains(err.Error(), `"`+table+`"`) {
		t.Errorf("error is %v, want ErrForeign for %s", err, table)
	}
	if tables := tablesOf(t, url); !slices.Equal(tables, []string{table}) {
		t.Errorf("tables are %q, want %s", tables, table)
	}
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
			if err := openError(t, url); err != nil {
				t.Errorf("Create: %v", err)
			}
			if err := createAlone(t, url); err != nil {
				t.Errorf("over providerd's tables: %v", err)
			}
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
			"(SQLSTATE 42501); grant the missing privilege to the role in the URL",
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
	const says = "providers (SQLSTATE 42501); grant the missing privilege to the role in the URL"
	processtest.WaitUntil(t, "readiness reports the missing privilege", func() bool {
		err := opened.Ready(t.Context())
		return errors.Is(err, store.ErrUnavailable) && strings.Contains(err.Error(), says)
	})
}
