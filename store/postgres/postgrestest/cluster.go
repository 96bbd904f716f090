// Package postgrestest starts private PostgreSQL servers for tests, with standbys, Patroni and PgBouncer, from Debian
// packages. It needs Linux. It does not depend on the tables of the store.
//
// Start with NewCluster; patroni.go manages clusters, and pgbouncer.go pools their connections.
package postgrestest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// ownDatabase is the database that initdb creates, used for statements that affect the whole cluster.
const ownDatabase = "postgres"

// Cluster is a PostgreSQL server with its databases, in a temporary directory. It listens on a port of 127.0.0.1, which
// it keeps across restarts, and on no Unix socket. fsync is on, as by default.
//
// Its databases are safe for concurrent use. Start, Stop, Kill, Freeze, Thaw, Promote and Close are not: only one
// goroutine may call them at a time.
type Cluster struct {
	// Name is unique. A standby uses it as its application_name.
	Name string
	// User is a superuser, who authenticates with Password by scram-sha-256.
	User string
	// Password is random, but most clusters that a user of the machine starts share it.
	Password string

	t testing.TB
	// locale is the language of the messages; "" for English.
	locale     string
	home       home
	binaries   string
	port       int
	postmaster *process
}

// German is a locale in which the server translates messages, including their severities.
const German = "de_DE.UTF-8"

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
	c := newNode(t)
	c.locale = locale
	ctx, cancel := waiting(t)
	defer cancel()
	// CREATE DATABASE is faster with few shared buffers.
	check(t, "start a cluster", c.create(ctx, "shared_buffers = '16MB'\n"))
	return c
}

// Run starts an empty cluster for a program that is not a test, calls work with the URL of a database, and removes the
// cluster.
func Run(ctx context.Context, work func(url string) error) (err error) {
	c, err := newCluster()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.remove(context.WithoutCancel(ctx))) }()
	if err := c.create(ctx, ""); err != nil {
		return err
	}
	return work(c.URL(ownDatabase))
}

// withoutVariable is set to run the tests on a machine without PostgreSQL.
const withoutVariable = "PROVIDERD_TEST_WITHOUT_POSTGRESQL"

// SkipWithout skips the test if the environment says that the machine has no PostgreSQL.
func SkipWithout(t testing.TB) {
	t.Helper()
	if os.Getenv(withoutVariable) != "" {
		t.Skip(withoutVariable + " is set")
	}
}

// newNode returns a cluster with an empty directory, not yet started.
func newNode(t testing.TB) *Cluster {
	t.Helper()
	SkipWithout(t)
	c, err := newCluster()
	check(t, "create a cluster", err)
	c.t = t
	t.Cleanup(c.Close)
	return c
}

// newCluster is newNode without a test.
func newCluster() (*Cluster, error) {
	binaries, err := findBinaries()
	if err != nil {
		return nil, err
	}
	dir, err := newHome()
	if err != nil {
		return nil, err
	}
	return &Cluster{Name: "node_" + randomName(), home: dir, binaries: binaries}, nil
}

// create initializes an empty cluster with lines of postgresql.conf, and starts it.
func (c *Cluster) create(ctx context.Context, settings string) error {
	c.User = "postgres"
	if err := c.initialize(ctx); err != nil {
		return err
	}
	// Keep the WAL for standbys that were stopped for a while.
	settings += "max_connections = 200\nwal_keep_size = '512MB'\n"
	if c.locale != "" {
		settings += "lc_messages = '" + c.locale + "'\n"
	}
	if err := c.home.write(filepath.Join(c.Dir(), "postgresql.conf"), settings); err != nil {
		return err
	}
	return c.startOnFreePort(ctx)
}

// Address returns the host and port.
func (c *Cluster) Address() string {
	return "127.0.0.1:" + strconv.Itoa(c.port)
}

// Dir returns the data directory.
func (c *Cluster) Dir() string { return filepath.Join(c.home.dir, "data") }

// URL returns the URL of a database of the cluster, with user and password.
func (c *Cluster) URL(database string) string {
	return databaseURL(c.User, c.Password, c.Address(), database)
}

// CreateDatabase creates an empty database with a unique name and returns its URL.
func (c *Cluster) CreateDatabase(t testing.TB) string {
	t.Helper()
	return CreateDatabase(t, c.URL(ownDatabase))
}

// CreateDatabase creates an empty database with a unique name on the server of a URL, and returns its URL. It is for
// tests in another process than their cluster.
func CreateDatabase(t testing.TB, server string) string {
	t.Helper()
	return createDatabase(t, server, "template1")
}

// CopyDatabase creates a copy, with a unique name, of a database without connections, and returns its URL.
func (c *Cluster) CopyDatabase(t testing.TB, source string) string {
	t.Helper()
	return createDatabase(t, c.URL(ownDatabase), source)
}

func createDatabase(t testing.TB, server, template string) string {
	t.Helper()
	ctx, cancel := waiting(t)
	defer cancel()
	name := "test_" + randomName()
	check(t, "create a database", with(ctx, server, func(connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template)
		return err
	}))
	parsed, err := url.Parse(server)
	check(t, "create a database", err)
	parsed.Path = "/" + name
	return parsed.String()
}

// Exec runs statements on one connection to a database, each in its own transaction.
func (c *Cluster) Exec(t testing.TB, database string, statements ...string) {
	t.Helper()
	ctx, cancel := waiting(t)
	defer cancel()
	check(t, c.Name, with(ctx, c.URL(database), func(connection *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := connection.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	}))
}

// Set changes a setting by ALTER SYSTEM, and returns once new connections and the checkpointer use it. Settings that are
// read only at the start take effect after Stop and Start.
func (c *Cluster) Set(t testing.TB, name, value string) {
	t.Helper()
	ctx, cancel := waiting(t)
	defer cancel()
	var loaded time.Time
	check(t, "set "+name, with(ctx, c.URL(ownDatabase), func(connection *pgx.Conn) error {
		return connection.QueryRow(ctx, "SELECT pg_conf_load_time()").Scan(&loaded)
	}))
	c.Exec(t, ownDatabase,
		"ALTER SYSTEM SET "+pgx.Identifier{name}.Sanitize()+" = '"+strings.ReplaceAll(value, "'", "''")+"'",
		"SELECT pg_reload_conf()")
	c.Await(t, "SELECT pg_conf_load_time() > $1", loaded)
	// The checkpointer tells commits whether to wait for a standby (SyncRepUpdateSyncStandbysDefined). It reads the settings
	// before a checkpoint.
	c.Exec(t, ownDatabase, "CHECKPOINT")
}

// Await waits until a query, in a database of the cluster's own, returns true. It uses one connection, and fails if that
// is lost.
func (c *Cluster) Await(t testing.TB, query string, arguments ...any) {
	t.Helper()
	ctx, cancel := waiting(t)
	defer cancel()
	check(t, "wait for "+c.Name, with(ctx, c.URL(ownDatabase), func(connection *pgx.Conn) error {
		return await(ctx, connection.PgConn().CleanupDone(), func() error {
			var isTrue bool
			if err := connection.QueryRow(ctx, query, arguments...).Scan(&isTrue); err != nil {
				return fmt.Errorf("%s: %w", query, err)
			}
			if !isTrue {
				return fmt.Errorf("%s: false", query)
			}
			return nil
		})
	}))
}

// with calls work with a new connection.
func with(ctx context.Context, url string, work func(*pgx.Conn) error) error {
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close(ctx) }()
	return work(connection)
}

// program returns the path of one of PostgreSQL's programs.
func (c *Cluster) program(name string) string {
	return filepath.Join(c.binaries, name)
}

// databaseURL returns the URL of a database on a server without TLS.
func databaseURL(user, password, address, database string) string {
	location := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: address, Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return location.String()
}

// randomName returns a unique SQL identifier in lower case.
func randomName() string {
	return strings.ToLower(rand.Text())
}
