// Package postgrestest starts private PostgreSQL servers for tests, with standbys and PgBouncer, from Debian packages.
// It needs Linux. It does not depend on the tables of the store.
//
// Start with NewCluster; NewPgBouncer pools the connections of a cluster. Kill is like a crash, and Freeze like a network
// that is lost. Server runs other programs as PostgreSQL is run.
package postgrestest

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/store/storetest/processtest"
)

const (
	// superuser authenticates with the password of a cluster by scram-sha-256.
	superuser = "postgres"
	// ownDatabase is the database that initdb creates, used for statements that affect the whole cluster.
	ownDatabase = "postgres"
	// German is a locale in which the server translates messages, including their severities.
	German = "de_DE.UTF-8"
)

// Cluster is a PostgreSQL server with its databases, in a temporary directory. It listens on a port of 127.0.0.1, which
// it keeps across restarts, and on no Unix socket. fsync is on, as by default.
//
// Its databases are safe for concurrent use. Start, Stop, Kill, Freeze, Thaw, Promote and Close are not: only one
// goroutine may call them at a time.
type Cluster struct {
	*Server
	// Password is random, but most clusters that a user of the machine starts share it.
	Password string
	// name is unique. A standby uses it as its application_name.
	name string
	// programs is the directory of its programs.
	programs string
	// locale is the language of the messages; "" for English.
	locale string
	port   int
}

// NewCluster starts an empty cluster, which is closed with the test. If the test runs as root, the server runs as the
// user postgres, or nobody if there is none. The server dies with the test's process. If that is killed, the directory
// remains.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	return NewClusterIn(t, "")
}

// NewClusterIn is NewCluster with server messages in a locale, such as German; "" for English.
func NewClusterIn(t testing.TB, locale string) *Cluster {
	t.Helper()
	return newCluster(t, Programs(t), locale)
}

// NewClusterOf is NewCluster with the programs in a directory.
func NewClusterOf(t testing.TB, programs string) *Cluster {
	return newCluster(t, programs, "")
}

func newCluster(t testing.TB, programs, locale string) *Cluster {
	t.Helper()
	c := newNode(t, programs, locale)
	c.initialize()
	// CREATE DATABASE is faster with few shared buffers. Keep the WAL for standbys that were stopped for a while.
	c.Write("data/postgresql.conf", "shared_buffers = '16MB'\nmax_connections = 200\nwal_keep_size = '512MB'\n"+
		"max_prepared_transactions = 4\n"+
		// Another server may have any settings: these change how it writes times, types and expressions.
		"timezone = 'Asia/Kathmandu'\nquote_all_identifiers = on\nIntervalStyle = 'iso_8601'\n")
	if locale != "" {
		c.Write("data/postgresql.conf", "lc_messages = '"+locale+"'\n")
	}
	c.Start(t)
	return c
}

// newNode returns a cluster without a data directory. The locale need not be installed. It skips the test if the
// environment says that the machine has no PostgreSQL.
func newNode(t testing.TB, programs, locale string) *Cluster {
	t.Helper()
	const without = "PROVIDERD_TEST_WITHOUT_POSTGRESQL"
	if os.Getenv(without) != "" {
		t.Skip(without + " is set")
	}
	c := &Cluster{
		Server: NewServer(t), name: "node_" + randomName(), programs: programs, locale: locale, port: processtest.FreePort(t),
	}
	if language, charset, found := strings.Cut(locale, "."); found {
		processtest.Must(t, os.Mkdir(c.Path("locales"), 0o700))
		c.own(c.Path("locales"))
		processtest.Run(t, c.Command("localedef", "--inputfile", language, "--charmap", charset, c.Path("locales/"+locale)))
		c.environment = []string{"LOCPATH=" + c.Path("locales") + ":/usr/lib/locale"}
	}
	return c
}

// initialize copies the data directory and its password from the user's cache, which is much faster than initdb. If
// there are none yet, it runs initdb and keeps a copy. All copies have the same system identifier.
func (c *Cluster) initialize() {
	c.t.Helper()
	command := c.Command(c.Program("initdb"), "--no-sync", "--encoding", "UTF8", "--locale", "C.UTF-8",
		"--username", superuser, "--auth", "scram-sha-256", "--pgdata", "data", "--pwfile", "password")
	cache, err := os.UserCacheDir()
	processtest.Must(c.t, err)
	kind := sha256.Sum256(fmt.Append(nil, command.Args, *cmp.Or(c.account, &syscall.Credential{})))
	original := filepath.Join(cache, "providerd", "postgrestest", hex.EncodeToString(kind[:8]))
	copyTo := func(to, from string) {
		processtest.Run(c.t, exec.CommandContext(c.t.Context(), "cp", "--archive", from+"/data", from+"/password", to))
	}
	if _, err := os.Stat(original); err == nil {
		copyTo(c.dir, original)
	} else {
		c.Write("password", rand.Text())
		processtest.Run(c.t, command)
		draft := original + randomName()
		processtest.Must(c.t, os.MkdirAll(draft, 0o700))
		copyTo(draft, c.dir)
		// If another test was faster, its copy stays.
		if os.Rename(draft, original) != nil {
			processtest.Must(c.t, os.RemoveAll(draft))
		}
	}
	password, err := os.ReadFile(c.Path("password"))
	processtest.Must(c.t, err)
	c.Password = string(password)
}

// Start starts the server again on the same port, and returns once it accepts connections. A killed server recovers
// first.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	// With mmap, shared memory is a file in the directory, and is removed with it however the server ends.
	command := c.Command(c.Program("postgres"), "-D", "data", "-p", strconv.Itoa(c.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "cluster_name="+c.name,
		"-c", "dynamic_shared_memory_type=mmap")
	command.SysProcAttr.Pdeathsig = syscall.SIGQUIT
	c.Launch(command, func() error {
		lines := c.PIDFile()
		if lines[0] != strconv.Itoa(command.Process.Pid) || strings.TrimSpace(lines[7]) != "ready" {
			return fmt.Errorf("it is not ready: %s", c.Log())
		}
		return nil
	})
}

// Stop shuts the server down in fast mode: it rolls transactions back and sends connected standbys all WAL. Stop does
// nothing if the server does not run. A frozen server must be thawed first.
func (c *Cluster) Stop(t testing.TB) {
	t.Helper()
	if c.IsRunning() {
		processtest.Must(t, c.child.Stop(syscall.SIGINT))
	}
}

// Program returns the path of a program of the server.
func (c *Cluster) Program(name string) string { return filepath.Join(c.programs, name) }

// Address returns the host and port.
func (c *Cluster) Address() string { return processtest.Local(c.port) }

// URL returns the URL of a database of the cluster, with user and password.
func (c *Cluster) URL(database string) string { return DatabaseURL(c.Password, c.Address(), database) }

// CreateDatabase creates an empty database with a unique name and returns its URL.
func (c *Cluster) CreateDatabase(t testing.TB) string {
	t.Helper()
	return CreateDatabase(t, c.URL(ownDatabase), "template1")
}

// CopyDatabase creates a copy, with a unique name, of a database without connections, and returns its URL.
func (c *Cluster) CopyDatabase(t testing.TB, source string) string {
	t.Helper()
	return CreateDatabase(t, c.URL(ownDatabase), source)
}

// CreateDatabase creates a copy of a database, with a unique name, on the server of a URL, and returns its URL. It is for
// tests in another process than their cluster.
func CreateDatabase(t testing.TB, server, template string) string {
	t.Helper()
	parsed := processtest.Try(url.Parse(server)).Must(t)
	parsed.Path = "/test_" + randomName()
	with(t, server, func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, "CREATE DATABASE "+parsed.Path[1:]+" TEMPLATE "+template)
		return err
	})
	return parsed.String()
}

// Exec runs statements on one connection to a database, each in its own transaction.
func (c *Cluster) Exec(t testing.TB, database string, statements ...string) {
	t.Helper()
	with(t, c.URL(database), func(ctx context.Context, connection *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := connection.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	})
}

// Set changes a setting by ALTER SYSTEM, and returns once new connections and the checkpointer use it. Settings that are
// read only at the start take effect after Stop and Start.
func (c *Cluster) Set(t testing.TB, name, value string) {
	t.Helper()
	var loaded time.Time
	with(t, c.URL(ownDatabase), func(ctx context.Context, connection *pgx.Conn) error {
		return connection.QueryRow(ctx, "SELECT pg_conf_load_time()").Scan(&loaded)
	})
	c.Exec(t, ownDatabase,
		"ALTER SYSTEM SET "+pgx.Identifier{name}.Sanitize()+" = '"+strings.ReplaceAll(value, "'", "''")+"'",
		"SELECT pg_reload_conf()")
	c.Await(t, "SELECT pg_conf_load_time() > $1", loaded)
	// The checkpointer tells commits whether to wait for a standby (SyncRepUpdateSyncStandbysDefined). It reads the settings
	// before a checkpoint.
	c.Exec(t, ownDatabase, "CHECKPOINT")
}

// UseUpTransactions restarts the server as it is when autovacuum could not freeze a table of a database for two billion
// transactions: the ids run out in less than 40 million, and the server warns of each that it assigns. They cannot be
// recovered.
func (c *Cluster) UseUpTransactions(t testing.TB, database string) {
	t.Helper()
	// VACUUM fails for a row that is older than its table.
	const oldest, perSegment, segmentSize = 2000, 1 << 20, 256 << 10
	const next = oldest + math.MaxInt32 - 39_000_000
	c.Exec(t, database, "CREATE TABLE held AS SELECT 1", fmt.Sprintf(
		"UPDATE pg_class SET relfrozenxid = '%d' WHERE relname = 'held'", oldest))
	c.Stop(t)
	processtest.Run(t, c.Command(c.Program("pg_resetwal"), "--next-transaction-id", strconv.Itoa(next), "--pgdata", "data"))
	// The server expects the states of all transactions around the next one.
	c.Write(fmt.Sprintf("data/pg_xact/%04X", next/perSegment), strings.Repeat("\x00", segmentSize))
	c.Start(t)
}

// Await waits until a query, in a database of the cluster's own, returns true. It uses one connection, and fails if that
// is lost.
func (c *Cluster) Await(t testing.TB, query string, arguments ...any) {
	t.Helper()
	with(t, c.URL(ownDatabase), func(ctx context.Context, connection *pgx.Conn) error {
		return processtest.Poll(func() error {
			var isTrue bool
			err := connection.QueryRow(ctx, query, arguments...).Scan(&isTrue)
			processtest.Require(t, !connection.IsClosed(), "wait for %s: %s: %v", c.name, query, err)
			if err == nil && !isTrue {
				err = fmt.Errorf("%s: false", query)
			}
			return err
		})
	})
}

// with calls work with a new connection.
func with(t testing.TB, url string, work func(ctx context.Context, connection *pgx.Conn) error) {
	t.Helper()
	// Not the context of the test, so that cleanups can connect.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), processtest.Timeout)
	defer cancel()
	connection := processtest.Try(pgx.Connect(ctx, url)).Must(t)
	defer func() { _ = connection.Close(ctx) }()
	processtest.Must(t, work(ctx, connection))
}
