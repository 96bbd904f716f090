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

// connect opens a connection that is closed with the test.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close(context.WithoutCancel(t.Context())) })
	return connection
}

func queryText(t *testing.T, connection *pgx.Conn, query string) string {
	t.Helper()
	var text string
	if err := connection.QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

func name(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return config.Database
}

func TestPgBouncer(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	pool := postgrestest.NewPgBouncer(t, cluster)
	url := pool.URL(name(t, cluster.CreateDatabase(t))) + "&default_query_exec_mode=exec"
	first, second := connect(t, url), connect(t, url)
	const session = "SELECT pg_backend_pid()::text"
	if a, b := queryText(t, first, session), queryText(t, second, session); a != b {
		t.Errorf("two idle clients have the sessions %s and %s: they are not pooled by transaction", a, b)
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
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	command.Env = append(os.Environ(), serveEnvironment+"=1", "TMPDIR="+dir)
	_, stdinErr := command.StdinPipe()
	stdout, stdoutErr := command.StdoutPipe()
	if err := errors.Join(stdinErr, stdoutErr, command.Start()); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address, found := strings.CutPrefix(strings.TrimSpace(line), "address ")
	if !found {
		t.Fatalf("output is %q, %v", line, err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	var dialer net.Dialer
	for ctx.Err() == nil {
		// The kernel accepts connections for a frozen server.
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			_ = connection.Close()
		}
		<-ticker.C
	}
	t.Error("the server outlives the test's process")
}
