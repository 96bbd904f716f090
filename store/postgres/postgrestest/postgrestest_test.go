//go:build slow

package postgrestest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/postgres/postgrestest"
)

// connect returns a connection that is closed with the test.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.WithoutCancel(t.Context())) })
	return connection
}

// answer returns what a query gives that gives one text.
func answer(t *testing.T, connection *pgx.Conn, query string) string {
	t.Helper()
	var text string
	if err := connection.QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

// name returns the name of the database that a URL leads to.
func name(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return config.Database
}

func TestDatabases(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	one, other := cluster.CreateDatabase(t), cluster.CreateDatabase(t)
	cluster.Exec(t, name(t, one), "CREATE TABLE marks (mark text)", "INSERT INTO marks VALUES ('kept')")
	if got := answer(t, connect(t, other), "SELECT coalesce(to_regclass('marks')::text, 'none')"); got != "none" {
		t.Errorf("another database has the table %s", got)
	}
	if got := answer(t, connect(t, one), "SHOW fsync"); got != "on" {
		t.Errorf("fsync is %s", got)
	}
	cluster.Set(t, "lock_timeout", "7s")
	if got := answer(t, connect(t, one), "SHOW lock_timeout"); got != "7s" {
		t.Errorf("lock_timeout is %s", got)
	}
	wrong := strings.Replace(one, cluster.Password, "wrong", 1)
	if connection, err := pgx.Connect(t.Context(), wrong); err == nil {
		t.Errorf("a wrong password was accepted: %v", connection.Close(t.Context()))
	}
	for end, stop := range map[string]func(){"stopped": func() { cluster.Stop(t) }, "killed": cluster.Kill} {
		stop()
		if connection, err := pgx.Connect(t.Context(), one); err == nil {
			t.Errorf("%s, it answers: %v", end, connection.Close(t.Context()))
		}
		cluster.Start(t)
		if got := answer(t, connect(t, one), "SELECT mark FROM marks"); got != "kept" {
			t.Errorf("%s and started, it has %s", end, got)
		}
	}
	cluster.Close()
	cluster.Close()
}

func TestStandbyHasWhatWasCommitted(t *testing.T) {
	t.Parallel()
	primary := postgrestest.NewCluster(t)
	database := name(t, primary.CreateDatabase(t))
	standby := primary.AddStandby(t)
	primary.RequireStandbys(t, standby)
	primary.Exec(t, database, "CREATE TABLE marks (mark text)", "INSERT INTO marks VALUES ('kept')")
	primary.Kill()
	standby.Promote(t)
	// A standby of the promoted one needs nothing of the old primary.
	next := standby.AddStandby(t)
	standby.RequireStandbys(t, next)
	standby.Set(t, "synchronous_commit", "remote_apply")
	standby.Exec(t, database, "INSERT INTO marks VALUES ('added')")
	if got := answer(t, connect(t, next.URL(database)), "SELECT string_agg(mark, ' ') FROM marks"); got != "kept added" {
		t.Errorf("the standby has %q", got)
	}
	next.Kill()
	connection := connect(t, standby.URL(database))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := connection.Exec(ctx, "INSERT INTO marks VALUES ('waits')"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without its standby, a commit gives %v", err)
	}
	// Promoted, it does not wait for those that its primary waits for.
	last := standby.AddStandby(t)
	last.Promote(t)
	last.Exec(t, database, "INSERT INTO marks VALUES ('apart')")
	standby.RequireStandbys(t)
	standby.Exec(t, database, "INSERT INTO marks VALUES ('alone')")
}

func TestFrozenServerAnswersWhenThawed(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	connection := connect(t, cluster.CreateDatabase(t))
	cluster.Freeze()
	// The deadline of the socket, unlike that of a context, leaves the connection open.
	result := connection.PgConn().Exec(t.Context(), "SELECT 'late'")
	socket := connection.PgConn().Conn()
	if err := socket.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := socket.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("frozen, it answers %d bytes, %v", n, err)
	}
	if err := socket.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	cluster.Thaw()
	rows, err := result.ReadAll()
	if err != nil || string(rows[0].Rows[0][0]) != "late" {
		t.Errorf("thawed, it answers %v, %v", rows, err)
	}
	// It is closed as it is.
	cluster.Freeze()
}

func TestPgBouncer(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	pool := postgrestest.NewPgBouncer(t, cluster)
	url := pool.URL(name(t, cluster.CreateDatabase(t))) + "&default_query_exec_mode=exec"
	one, other := connect(t, url), connect(t, url)
	const session = "SELECT pg_backend_pid()::text"
	if first, second := answer(t, one, session), answer(t, other, session); first != second {
		t.Errorf("two idle clients have the sessions %s and %s: they are not pooled by transaction", first, second)
	}
}

// serveEnvironment makes TestServersDieWithTheProcess the process that dies.
const serveEnvironment = "POSTGRESTEST_SERVE"

func TestServersDieWithTheProcess(t *testing.T) {
	if os.Getenv(serveEnvironment) != "" {
		cluster := postgrestest.NewCluster(t)
		cluster.Freeze()
		fmt.Println("address", cluster.Address())
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	postgrestest.SkipWithout(t)
	t.Parallel()
	folder := t.TempDir()
	if err := errors.Join(os.Chmod(folder, 0o777), os.Chmod(filepath.Dir(folder), 0o755)); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	command.Env = append(os.Environ(), serveEnvironment+"=1", "TMPDIR="+folder)
	_, stdinErr := command.StdinPipe()
	stdout, stdoutErr := command.StdoutPipe()
	if err := errors.Join(stdinErr, stdoutErr, command.Start()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "address ")
	if !found {
		t.Fatalf("it said %q, %v", line, err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	var dialer net.Dialer
	for ctx.Err() == nil {
		// A frozen server still has its socket, and the kernel answers.
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			_ = connection.Close()
		}
		<-again.C
	}
	t.Error("the server outlives the process of its test")
}
