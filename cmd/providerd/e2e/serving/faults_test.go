//go:build slow

package serving_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

func mount(t *testing.T, path string, arguments ...string) {
	t.Helper()
	processtest.NeedRoot(t)
	providerdtest.Run(t, "mount", append(arguments, path)...)
	t.Cleanup(func() { processtest.Check(t, syscall.Unmount(path, syscall.MNT_DETACH)) })
}

func TestDiskFull(t *testing.T) {
	dir, client := t.TempDir(), contracttest.Client(t)
	mount(t, dir, "-t", "tmpfs", "-o", "size=16m", "tmpfs")
	filler := filepath.Join(dir, "filler")
	processtest.Must(t, os.WriteFile(filler, bytes.Repeat([]byte("x"), 8<<20), 0o600))
	server := providerdtest.Serve(t, dir)
	send := func(query, key string, want int) {
		t.Helper()
		server.ExpectPost(t, client, want, providerdtest.OAuth2Path+query, providerdtest.OAuth2Body, key)
	}
	acknowledged, refused := 0, 0
	// createUntil sends creates of about 100 kB until one gets the status want.
	createUntil := func(want int) {
		t.Helper()
		body := fmt.Sprintf(`{"name":%q,"delegated_subject":"admin@example.com","credentials":{},`+
			`"default_group_email_domain":"example.com"}`, strings.Repeat("x", 100_000))
		for status, tries := 0, 1; status != want; tries++ {
			var text string
			var err error
			status, text, err = server.Post(client, providerdtest.DirectoryPath, body)
			switch {
			case err == nil && status == http.StatusCreated:
				acknowledged++
			case err == nil && status == http.StatusServiceUnavailable && strings.Contains(text, "/problems/storage-unavailable"):
				refused++
			default:
				t.Fatalf("status is %d, %v: %s", status, err, text)
			}
			processtest.Require(t, tries != 1000, "no create got status %d", want)
		}
	}
	const validation, key = "?validate_only=true", `"replayed"`
	send("", key, http.StatusCreated)
	acknowledged++
	for range 3 {
		createUntil(http.StatusServiceUnavailable)
		server.ExpectReadiness(t, "unavailable")
		// A replay stores nothing, so it does not make the server ready.
		send(validation, "", http.StatusServiceUnavailable)
		send("", key, http.StatusCreated)
		server.ExpectReadiness(t, "unavailable")
	}
	processtest.Must(t, os.Remove(filler))
	// The server becomes ready again without a create.
	send(validation, "", http.StatusOK)
	server.ExpectReadiness(t, "ready")
	for range 5 {
		createUntil(http.StatusCreated)
	}
	server.Stop(t)
	stored := len(providerdtest.StoredPKs(t, dir))
	t.Logf("acknowledged %d, refused %d, stored %d", acknowledged, refused, stored)
	processtest.Equal(t, stored, acknowledged, "stored records")
	providerdtest.CheckIntegrity(t, filepath.Join(dir, "data", "providerd.db"))
}

// TestDatabaseReadOnly starts a server with a database that nobody can write to, not even root.
func TestDatabaseReadOnly(t *testing.T) {
	server := providerdtest.Serve(t, t.TempDir())
	server.Create(t, contracttest.Client(t))
	server.Stop(t)
	path := filepath.Join(server.Dir, "data", "providerd.db")
	mount(t, path, "--bind", path)
	providerdtest.Run(t, "mount", "-o", "remount,bind,ro", path)
	providerdtest.ExpectExit(t, providerdtest.ServeCommand(t.Context(), server.Dir), providerdtest.ExitFailed, "read-only file system")
}

func TestSecondServerIsRefused(t *testing.T) {
	t.Parallel()
	server := providerdtest.Serve(t, t.TempDir())
	providerdtest.ExpectExit(t, providerdtest.ServeCommand(t.Context(), server.Dir), providerdtest.ExitFailed,
		fmt.Sprintf("^(?s:.*)providerd: lock database: process %d of .* serves data/providerd.db; stop it, or use PostgreSQL to run several servers\n", server.Command.Process.Pid))
}

// TestLockOfAnotherProgram holds the lock of the database most of the time, as a program that writes in a loop does.
// Creates succeed, and the log, /readyz and a metric say why they take long.
func TestLockOfAnotherProgram(t *testing.T) {
	t.Parallel()
	dir, client := t.TempDir(), contracttest.Client(t)
	server, ops := providerdtest.ServeWithOps(t, dir)
	other, err := sql.Open("sqlite3", filepath.Join(dir, "data", "providerd.db")+"?_txlock=immediate&_busy_timeout=30000")
	processtest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	defer func() {
		cancel()
		writer.Wait()
		processtest.Must(t, other.Close())
	}()
	writer.Go(func() {
		for ctx.Err() == nil {
			if tx, err := other.BeginTx(ctx, nil); err == nil {
				<-time.After(200 * time.Millisecond)
				_ = tx.Rollback()
			}
			<-time.After(20 * time.Millisecond)
		}
	})
	processtest.WaitUntil(t, "/readyz says why creates are slow", func() bool {
		server.Create(t, client)
		status, text := providerdtest.Get(t, server.URL+"/readyz")
		return status == http.StatusOK && strings.Contains(text, "another program locks the database")
	})
	processtest.Equal(t, strings.Count(server.Stderr.String(), "another program holds the lock of the database"),
		1, "times that the log says what creates wait for: %s", server.Stderr)
	waited := providerdtest.Scrape(t, ops)["providerd_lock_wait_seconds_total"]
	processtest.Expect(t, waited >= 5, "creates have waited %v s by the metric", waited)
}

// TestSequencesSetBack sets sequences back under load. Every create is stored once; no pk or event is given twice.
func TestSequencesSetBack(t *testing.T) {
	t.Parallel()
	const replicas, callers, creates, rounds = 2, 8, 50, 3
	cluster := postgrestest.NewCluster(t)
	address := cluster.CreateDatabase(t)
	parsed := processtest.Try(url.Parse(address)).Must(t)
	f := providerdtest.StartFleet(t, address, replicas)
	journal := providerdtest.NewJournal()
	load := journal.Load(callers, "k", func(name string) (providerdtest.Record, error) {
		return providerdtest.ErrorUnlessCreated(f.Create(rand.IntN(replicas), name, ""))
	})
	follower := providerdtest.StartFollower(t, f.Dir, f.Command)
	for range rounds {
		for _, sequence := range []string{"providers_pk_seq", "events_id_seq"} {
			journal.WaitForMore(t, creates)
			cluster.Exec(t, strings.TrimPrefix(parsed.Path, "/"), "SELECT setval('"+sequence+"', 1, false)")
		}
	}
	journal.WaitForMore(t, creates)
	load.Stop()
	journal.Compare(t, f.Stored(t, f.URL))
	pks := map[int64]string{}
	for name, record := range journal.Creates {
		other, isTaken := pks[record.PK]
		processtest.Expect(t, !isTaken, "%s and %s have the pk %d", name, other, record.PK)
		pks[record.PK] = name
	}
	follower.Verify(t)
	f.Stop(t)
}

// TestPasswordIsReplaced changes the password of the server's role, and moves a new password file into place, after which
// connections end. The URL also lists another server, whose line has another password.
func TestPasswordIsReplaced(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	database := processtest.Try(url.Parse(cluster.CreateDatabase(t))).Must(t).Path[1:]
	cluster.Exec(t, database, "CREATE ROLE server LOGIN PASSWORD 'first'", "GRANT CREATE ON SCHEMA public TO server")
	away := "127.0.0.1:" + strconv.Itoa(processtest.FreePort(t))
	dir := t.TempDir()
	file := filepath.Join(dir, "pgpass")
	replaceFile := func(user, password string) {
		lines := fmt.Sprintf("%s:*:server:other\n%s:*:%s:%s\n", away, cluster.Address(), user, password)
		processtest.Must(t, os.WriteFile(file+".new", []byte(lines), 0o600), os.Rename(file+".new", file))
	}
	replaceFile("server", "first")
	address := fmt.Sprintf("postgres://server@%s,%s/%s?sslmode=disable", away, cluster.Address(), database)
	environment := []string{"PROVIDERD_DATABASE=" + address, "PROVIDERD_KEYSET=keyset.json", "PGPASSFILE=" + file}
	with := func(words ...string) []string { return slices.Concat(environment, words) }
	providerdtest.RunCommand(t, dir, with("key", "create")...)
	server := providerdtest.Serve(t, dir, environment...)
	token := providerdtest.RunCommand(t, dir, with("token", "create", "--quiet", "--name", "initial", "--allow", "all")...)
	processtest.Must(t, os.Mkdir(filepath.Join(dir, "data"), 0o700))
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "data", "initial-token"), []byte(token), 0o600))
	client := contracttest.Client(t)
	server.Create(t, client)

	cluster.Exec(t, database, "ALTER ROLE server PASSWORD 'second'")
	replaceFile("server", "second")
	cluster.Exec(t, database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'server'")
	processtest.WaitUntil(t, "a create is stored", func() bool {
		_, err := server.CreateOnce(client, "after")
		return err == nil
	})
	providerdtest.RunCommand(t, dir, with("doctor")...)

	replaceFile("another", "second")
	providerdtest.ExpectExit(t, providerdtest.Command(t.Context(), dir, with("token", "list")...), 1,
		`password authentication failed for the user in the URL \(SQLSTATE 28P01\): no line of PGPASSFILE matches `+
			`HOST:PORT:DATABASE:USER; add one, or correct the URL`)

	// The password of a connection service file comes before those of the password file.
	replaceFile("server", "first")
	services := filepath.Join(dir, "services")
	processtest.Must(t, os.WriteFile(services, []byte("[replica]\npassword=second\n"), 0o600))
	providerdtest.RunCommand(t, dir, with("PGSERVICEFILE="+services, "PGSERVICE=replica", "token", "list")...)
}
