//go:build slow

package commands_test

import (
	"net/url"
	"slices"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// TestDoctorOverPostgreSQL changes one setting of the server at a time. By default, there is no standby and no
// archive, which are warnings.
func TestDoctorOverPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	location := processtest.Try(url.Parse(cluster.CreateDatabase(t))).Must(t)
	name := location.Path[1:]
	// Limits do not apply to superusers.
	cluster.Exec(t, name, "CREATE ROLE providerd LOGIN PASSWORD 'example'", "ALTER DATABASE "+name+" OWNER TO providerd")
	location.User = url.UserPassword("providerd", "example")
	dir, address := t.TempDir(), location.String()
	examined := setUp{dir: dir, environment: []string{"PROVIDERD_DATABASE=" + address, "PROVIDERD_KEYSET=k.json"}}
	standby := warns("standbys", "synchronous_standby_names is empty: .*; run a synchronous standby and list it there")
	archive := warns("archive", "archive_mode is off: .*; set it to on, with an archive_command such as pgBackRest's")
	expectOnly(t, examined,
		standby, archive,
		fails("schema", `no providerd database; run "providerd serve" to create one, or pass yours with --database or PROVIDERD_DATABASE`),
		fails("keyset", "no keyset file: .*k.json; restore it, or pass its path with --keyset; without it the secrets in the database cannot be decrypted"),
	)
	providerdtest.RunCommand(t, dir, "key", "create", "--keyset", "k.json")
	server := providerdtest.Serve(t, dir, examined.environment...)
	noToken := warns("tokens", `no token is valid, so no one can create anything; run "providerd token create"`)
	expectChecks(t, expectOnly(t, examined, standby, archive, noToken), "configuration, keyset file, "+
		"database, settings, standbys, archive, "+
		"connections, transactions, schema, keyset, records, tokens")
	cluster.Exec(t, name, "ALTER DATABASE "+name+" CONNECTION LIMIT 73")
	allowed := []string{"^ok connections: PostgreSQL allows 73 connections, enough for 3 replicas of up to 24 each"}
	expectOnly(t, examined, standby, archive, noToken, allowed)
	cluster.Exec(t, name, "ALTER DATABASE "+name+" CONNECTION LIMIT 20")
	expectOnly(t, examined, standby, archive, noToken, warns("connections", "a replica may open up to 24 connections, but PostgreSQL allows 20: .*; raise max_connections or the role's limit, or connect through PgBouncer"))
	server.Stop(t)
	cluster.Await(t, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = $1)", name)
	cluster.Exec(t, name, "ALTER DATABASE "+name+" CONNECTION LIMIT 1")
	expectOnly(t, examined, standby, archive, noToken, fails("connections", `.* PostgreSQL allows 1: "serve" needs at least 2 to start; raise max_connections .*`))
	cluster.Exec(t, name, "ALTER DATABASE "+name+" CONNECTION LIMIT -1")
	for setting, says := range map[string]string{
		"fsync":                         `storage is unavailable: unsafe server: setting fsync is "off", which could lose acknowledged creates or their events; set it to on`,
		"full_page_writes":              `storage is unavailable: unsafe server: setting full_page_writes is "off", which could lose acknowledged creates or their events; set it to on`,
		"synchronous_commit":            `storage is unavailable: unsafe server: setting synchronous_commit is "off", which could lose acknowledged creates or their events; set it to on`,
		"default_transaction_read_only": "",
	} {
		value, wanted := "off", slices.Concat(standby, archive, noToken, fails("settings", says))
		if says == "" {
			value, wanted = "on", fails("database", `connect to the database: storage is unavailable: no connection: 127\.0\.0\.1:[0-9]+: read only connection; start the primary, or list all servers in the URL; a primary needs default_transaction_read_only = off`)
		}
		cluster.Set(t, setting, value)
		expectOnly(t, examined, wanted)
		cluster.Set(t, setting, map[string]string{"on": "off", "off": "on"}[value])
	}
	cluster.Exec(t, name, "ALTER TABLE tokens SET UNLOGGED")
	expectOnly(t, examined, standby, archive, noToken, fails("schema", `storage is unavailable: the schema differs from what this program creates: table "tokens" is unlogged; undo what another program has changed`))
	cluster.Exec(t, name, "ALTER TABLE tokens SET LOGGED")
	cluster.Exec(t, name, "ALTER SEQUENCE events_id_seq RESTART")
	expectOnly(t, examined, standby, archive, noToken, warns("schema", `rows were copied without their sequences; "providerd serve" moves these past the keys in use`))
	cluster.Exec(t, name, "SELECT setval('events_id_seq', max(id)) FROM events")
	cluster.Set(t, "archive_mode", "on")
	cluster.Stop(t)
	expectOnly(t, examined, fails("database", "connect to the database: storage is unavailable: no connection: .*refused; start the primary, or correct the host and port in the URL"))
	cluster.Start(t)
	expectOnly(t, examined, standby, noToken, warns("archive", "archive_command is empty: nothing is archived, and WAL accumulates; set it or archive_library"))
	cluster.Set(t, "archive_command", "false")
	cluster.Exec(t, name, "SELECT pg_switch_wal()", "UPDATE schema_support SET oldest_level = 99")
	awaitArchiver(t, cluster, name, "failed_count > 0")
	newer := fails("schema", "database is from a newer version of providerd: its schema version [0-9]+ requires a program that supports version 99; this one supports up to [0-9]+; use a newer providerd")
	expectOnly(t, examined, standby, newer, fails("archive", "archive_command fails, and WAL accumulates; see PostgreSQL's log"))
	cluster.Set(t, "archive_command", "true")
	cluster.Exec(t, name, "UPDATE schema_support SET oldest_level = 1",
		"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)")
	awaitArchiver(t, cluster, name, "last_archived_time > last_failed_time")
	expectOnly(t, examined, standby, noToken)
	cluster.UseUpTransactions(t, name)
	// At first, autovacuum has not frozen the other databases either.
	expectOnly(t, examined, standby, noToken, warns("transactions", `PostgreSQL refuses writes when transaction ids run out, and database "[a-z0-9_]+" keeps old ones; end the long transactions, prepared transactions or replication slots that VACUUM waits for, and run VACUUM in that database`))
}

// awaitArchiver waits until the statistics of the archiver meet a condition.
func awaitArchiver(t *testing.T, cluster *postgrestest.Cluster, name, condition string) {
	t.Helper()
	cluster.Exec(t, name, "DO $$ BEGIN WHILE NOT (SELECT coalesce("+condition+", false) FROM pg_stat_archiver) LOOP "+
		"PERFORM pg_sleep(0.02), pg_stat_clear_snapshot(); END LOOP; END $$")
}
