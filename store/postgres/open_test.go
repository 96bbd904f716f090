//go:build slow

package postgres_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pressly/goose/v3/lock"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// Settings that could lose an acknowledged create, or a character, are refused by name, whether of the server, a
// database or a connection.
func TestUnsafeServersAreRefused(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	expect := func(url, says string, want error) {
		t.Helper()
		err := openError(t, url)
		processtest.Expect(t, errors.Is(err, want) && regexp.MustCompile(says).MatchString(fmt.Sprint(err)),
			"error is %v, want %v with %q", err, want, says)
	}
	for _, test := range []struct {
		setting, value string
		is             error
		says           string
	}{
		{"synchronous_commit", "off", database.ErrUnsafe, `synchronous_commit is "off"`},
		{"synchronous_commit", "local", database.ErrUnsafe, `synchronous_commit is "local"`},
		{"synchronous_commit", "remote_apply", nil, ""},
		{"session_replication_role", "replica", database.ErrUnsafe, `session_replication_role is "replica".*; set it to origin`},
		{"session_replication_role", "local", database.ErrUnsafe, `session_replication_role is "local".*; set it to origin`},
		{"default_transaction_read_only", "on", database.ErrUnavailable, "read.only"},
	} {
		url := cluster.CreateDatabase(t)
		cluster.Exec(t, "postgres", fmt.Sprintf("ALTER DATABASE %s SET %s = %s", databaseOf(t, url), test.setting, test.value))
		expect(url, test.says, test.is)
	}
	url := cluster.CreateDatabase(t)
	expect(with(url, "synchronous_commit=off"), `synchronous_commit is "off"`, database.ErrUnsafe)
	cluster.Exec(t, "postgres", "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
	expect(cluster.URL("ascii"), `server_encoding is "SQL_ASCII".*ENCODING 'UTF8'`, database.ErrUnsafe)
	cluster.Exec(t, "postgres", "ALTER DATABASE "+databaseOf(t, url)+" SET bytea_output = escape")
	expect(with(url, "default_query_exec_mode=exec"), `bytea_output is "escape"`, database.ErrUnsafe)
	expect(url, "", nil)
	for setting, value := range map[string]string{
		"fsync": "off", "full_page_writes": "off", "zero_damaged_pages": "on", "data_sync_retry": "on",
	} {
		set := func(value string) {
			cluster.Set(t, setting, value)
			// One is read only at start.
			cluster.Stop(t)
			cluster.Start(t)
		}
		set(value)
		expect(url, setting+` is "`+value+`"`, database.ErrUnsafe)
		set(map[string]string{"on": "off", "off": "on"}[value])
	}
}

// A newer schema is used as long as it supports this program, by statements too that a replica has prepared. If it no
// longer does, creates and changes stop immediately, whether a replica has loaded the keys since or not.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url, keyset := cluster.CreateDatabase(t), newKeyset(t)
	loaded, unloaded := openStore(t, url, keyset), openStore(t, url, keyset)
	version := processtest.Try(postgres.SchemaVersion()).Must(t)
	migrate := func(statement string) {
		cluster.Exec(t, databaseOf(t, url), statement+"; UPDATE keyset SET version = uuid_send(gen_random_uuid())")
	}
	expectUse := func(table string) {
		t.Helper()
		createEach(t, loaded, table)
		expectReplay(t, loaded, table, true)
		expectMade(t, loaded, table, true)
		storetest.Collect(t, loaded.Tokens.List(t.Context()))
	}
	expectUse("none")
	migrate(fmt.Sprintf("INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, true)", version+1))
	for _, table := range []string{"providers", "tokens"} {
		migrate("ALTER TABLE " + table + " ADD COLUMN note text")
		expectUse(table)
	}
	createEach(t, unloaded, "expanded too")
	processtest.CheckAs(t, openError(t, url), "expanded")
	migrate(fmt.Sprintf("UPDATE schema_support SET oldest_level = %d", version+1))
	ready := loaded.Ready(t.Context())
	for name, replica := range map[string]*store.Store{"loaded": loaded, "unloaded": unloaded} {
		_, createErr := keyedCreate(t.Context(), replica, name)
		_, replayErr := keyedCreate(t.Context(), replica, "providers")
		_, validateErr := keyedValidate(t.Context(), replica, "validated")
		_, changeErr := replica.Keys.Rotate(t.Context())
		for what, err := range map[string]error{
			"Ready": ready, "create": createErr, "replay": replayErr, "validation": validateErr, "change": changeErr,
		} {
			if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, database.ErrNewer) ||
				!strings.Contains(err.Error(), "use a newer providerd") {
				t.Errorf("%s: %s: error is %v, want ErrUnavailable and ErrNewer", name, what, err)
			}
		}
	}
	processtest.IsError(t, openError(t, url), database.ErrNewer)
	processtest.Equal(t, len(storetest.Collect(t, loaded.Providers.List(t.Context(), store.Filter{}, 0))), 4, "stored records")
}

// Replicas that start at the same time on an empty database all start, even if a pooler may give each transaction
// another connection.
func TestManyFirstStarts(t *testing.T) {
	t.Parallel()
	rounds := processtest.ProofSize(t, "faults", 1)
	cluster := postgrestest.NewCluster(t)
	pooled := postgrestest.NewPgBouncer(t, cluster)
	for round := range rounds {
		for _, url := range []string{cluster.CreateDatabase(t), pooled(databaseOf(t, cluster.CreateDatabase(t)))} {
			const replicas = 10
			var group sync.WaitGroup
			for range replicas {
				group.Go(func() {
					processtest.CheckAs(t, openError(t, url), "round %d", round)
				})
			}
			group.Wait()
		}
	}
}

// Programs wait for the lock of a killed migration and log that. Only the one that migrates logs the migration.
func TestMigrationsTakeTurns(t *testing.T) {
	t.Parallel()
	cluster, url := newDatabase(t)
	cluster.Exec(t, databaseOf(t, url),
		`CREATE TABLE goose_lock (lock_id bigint PRIMARY KEY, locked boolean NOT NULL, locked_at timestamptz,
			locked_by text, lease_expires_at timestamptz, updated_at timestamptz)`,
		fmt.Sprintf("INSERT INTO goose_lock VALUES (%d, true, now(), 'killed', now() + interval '3 seconds', now())",
			lock.DefaultLockID))
	const programs = 3
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	var group sync.WaitGroup
	for range programs {
		group.Go(func() {
			processtest.Must(t, closed(postgres.Create(t.Context(), parse(t, url), logger)))
		})
	}
	group.Wait()
	text := log.String()
	if waiting := strings.Count(text, "waiting for another program to migrate"); waiting != programs ||
		!strings.Contains(text, "program=killed") {
		t.Errorf("%d programs logged that they wait: %s", waiting, text)
	}
	processtest.Equal(t, strings.Count(text, "migrated the database"), 1, "programs that logged that they migrated: %s", text)
}

// Create warns of a primary whose commits do not wait for a standby.
func TestMissingStandbyIsLogged(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, "")
	alone := postgrestest.NewCluster(t).CreateDatabase(t)
	for url, want := range map[string]int{r.url: 0, alone: 1} {
		var log strings.Builder
		err := closed(postgres.Create(t.Context(), parse(t, url), slog.New(slog.NewTextHandler(&log, nil))))
		if warned := strings.Count(log.String(), "no synchronous standby"); err != nil || warned != want {
			t.Errorf("warned %d times, want %d: %s, %v", warned, want, log.String(), err)
		}
	}
}

// A program refuses a standby, but finds the primary behind one in the URL. It waits for a primary that is slow to respond
// or to continue, even if the URL also names a standby.
func TestBusyPrimary(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, "")
	processtest.IsError(t, openError(t, r.standby.URL(databaseOf(t, r.url))), database.ErrUnavailable)
	if err := openError(t, strings.Replace(r.url, r.primary.Address(), r.standby.Address()+","+r.primary.Address(), 1)); err != nil {
		t.Errorf("standby, then primary: %v", err)
	}
	for name, delays := range map[string][]time.Duration{
		"silent at first":  {1500 * time.Millisecond},
		"slow to continue": {0, 2500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			location := processtest.Try(url.Parse(r.url)).Must(t)
			server := location.Host
			location.Host = processtest.Answering(t, func(caller net.Conn) { processtest.Relay(caller, server, delays...) }) + "," + r.standby.Address()
			processtest.Check(t, openError(t, location.String()))
		})
	}
}

// A program sees the connections of servers of another role, and not those of other programs.
func TestServersAreSeen(t *testing.T) {
	t.Parallel()
	cluster, address := newDatabase(t)
	server := create(t, address)
	other := processtest.Try(url.Parse(address)).Must(t)
	cluster.Exec(t, databaseOf(t, address), "CREATE ROLE reader LOGIN PASSWORD '"+cluster.Password+"' IN ROLE pg_read_all_data")
	other.User = url.UserPassword("reader", cluster.Password)
	var opened []*postgres.Database
	for _, address := range []string{address, other.String()} {
		command, err := postgres.Open(t.Context(), parse(t, address), slog.New(slog.DiscardHandler))
		opened = append(opened, processtest.Closing(t, command, err))
	}
	expect := func(want error) {
		t.Helper()
		for _, command := range opened {
			processtest.IsError(t, command.CheckUnserved(t.Context()), want)
		}
	}
	expect(database.ErrInUse)
	processtest.Must(t, server.Close())
	cluster.Await(t, "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'providerd serve'")
	expect(nil)
}
