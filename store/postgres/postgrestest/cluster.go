// Package postgrestest starts real, private PostgreSQL servers for tests, with standbys, Patroni and PgBouncer, from
// the packages of Debian. It needs Linux. It knows no table of the store.
//
// Start with NewCluster; patroni.go and pgbouncer.go put something in front of clusters.
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

// ownDatabase is the database that initdb makes, for what concerns the whole cluster.
const ownDatabase = "postgres"

// Cluster is a PostgreSQL server with its databases, in a temporary folder. It listens on a port of 127.0.0.1 that it
// keeps over restarts, and on no socket of the file system. It has fsync on, as PostgreSQL has by default.
//
// Its databases may be used by all goroutines at once. Its life (Start, Stop, Kill, Freeze, Thaw, Promote, Close) is
// led by one goroutine at a time.
type Cluster struct {
	// Name is the cluster's own. A standby gives it as its application_name.
	Name string
	// User is a superuser, who authenticates with Password by scram-sha-256.
	User string
	// Password is random. A standby has that of its primary.
	Password string

	t testing.TB
	// locale is that of the messages; "" for English.
	locale     string
	home       home
	binaries   string
	port       int
	postmaster *process
}

// German is the locale of a cluster whose server translates messages, the severity of each included.
const German = "de_DE.UTF-8"

// NewCluster returns an empty cluster that runs. It is closed with the test. Where the test runs as root, the server
// runs as the user postgres, or else nobody. It dies with the test's process, also where that is killed, which leaves
// its folder behind.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	return NewClusterIn(t, "")
}

// NewClusterIn is NewCluster for a server whose messages are in a locale, such as German; "" for English.
func NewClusterIn(t testing.TB, locale string) *Cluster {
	t.Helper()
	c := newNode(t)
	c.locale = locale
	ctx, cancel := waiting(t)
	defer cancel()
	check(t, "start a cluster", c.create(ctx))
	return c
}

// Run starts an empty cluster as NewCluster does, for a program that is no test, and removes it after the work, which
// gets the URL of a database.
func Run(ctx context.Context, work func(url string) error) (err error) {
	c, err := newCluster()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.remove(context.WithoutCancel(ctx))) }()
	if err := c.create(ctx); err != nil {
		return err
	}
	return work(c.URL(ownDatabase))
}

// withoutVariable is set where somebody runs the tests on a machine that has no PostgreSQL, and is told so.
const withoutVariable = "PROVIDERD_TEST_WITHOUT_POSTGRESQL"

// SkipWithout skips a test of PostgreSQL where the environment says that the machine has none.
func SkipWithout(t testing.TB) {
	t.Helper()
	if os.Getenv(withoutVariable) != "" {
		t.Skip(withoutVariable + " is set")
	}
}

// newNode returns a cluster that has an empty folder.
func newNode(t testing.TB) *Cluster {
	t.Helper()
	SkipWithout(t)
	c, err := newCluster()
	check(t, "make a cluster", err)
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
	folder, err := newHome()
	if err != nil {
		return nil, err
	}
	return &Cluster{Name: "node_" + randomName(), home: folder, binaries: binaries}, nil
}

// create makes an empty cluster, and starts it.
func (c *Cluster) create(ctx context.Context) error {
	c.User, c.Password = "postgres", rand.Text()
	if err := c.initialise(ctx); err != nil {
		return err
	}
	return c.startOnFreePort(ctx)
}

// initialise runs initdb, and settles what tests may change by Set.
func (c *Cluster) initialise(ctx context.Context) error {
	password := filepath.Join(c.home.folder, "password")
	if err := c.home.write(password, c.Password); err != nil {
		return err
	}
	err := c.home.run(ctx, c.program("initdb"), "--pgdata", c.Dir(), "--no-sync", "--encoding", "UTF8",
		"--locale", "C.UTF-8", "--username", c.User, "--pwfile", password, "--auth", "scram-sha-256")
	if err != nil {
		return err
	}
	// A standby that was away for a while finds what it missed.
	settings := "max_connections = 200\nwal_keep_size = '512MB'\n"
	if c.locale != "" {
		settings += "lc_messages = '" + c.locale + "'\n"
	}
	return c.home.write(filepath.Join(c.Dir(), "postgresql.conf"), settings)
}

// Address returns the host and the port, for a URL of several hosts, or for a proxy.
func (c *Cluster) Address() string {
	return "127.0.0.1:" + strconv.Itoa(c.port)
}

// Dir returns the directory that holds the files of the databases and their WAL.
func (c *Cluster) Dir() string { return filepath.Join(c.home.folder, "data") }

// URL returns the URL of a database of the cluster, with user and password.
func (c *Cluster) URL(database string) string {
	return databaseURL(c.User, c.Password, c.Address(), database)
}

// CreateDatabase makes an empty database with a name of its own, and returns its URL.
func (c *Cluster) CreateDatabase(t testing.TB) string {
	t.Helper()
	return CreateDatabase(t, c.URL(ownDatabase))
}

// CreateDatabase makes an empty database with a name of its own on the server of a URL, for a test that runs in another
// process than its cluster, and returns its URL.
func CreateDatabase(t testing.TB, server string) string {
	t.Helper()
	ctx, cancel := waiting(t)
	defer cancel()
	name := "test_" + randomName()
	check(t, "create a database", with(ctx, server, func(connection *pgx.Conn) error {
		_, err := connection.Exec(ctx, "CREATE DATABASE "+name)
		return err
	}))
	parsed, err := url.Parse(server)
	check(t, "create a database", err)
	parsed.Path = "/" + name
	return parsed.String()
}

// Exec runs statements in a database on one connection, each in a transaction of its own.
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

// Set changes a setting of the server by ALTER SYSTEM, and returns once new connections have it. What only a start
// reads is in force after Stop and Start.
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
	c.awaitTrue(t, "SELECT pg_conf_load_time() > $1", loaded)
}

// awaitTrue asks, each time on a new connection, until the answer is true.
func (c *Cluster) awaitTrue(t testing.TB, question string, arguments ...any) {
	t.Helper()
	ctx, cancel := waiting(t)
	defer cancel()
	check(t, "wait for "+c.Name, await(ctx, nil, func() error {
		return with(ctx, c.URL(ownDatabase), func(connection *pgx.Conn) error {
			var yes bool
			if err := connection.QueryRow(ctx, question, arguments...).Scan(&yes); err != nil {
				return fmt.Errorf("%s: %w", question, err)
			}
			if !yes {
				return fmt.Errorf("%s: false", question)
			}
			return nil
		})
	}))
}

// with lets work use a connection of its own.
func with(ctx context.Context, url string, work func(*pgx.Conn) error) error {
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close(ctx) }()
	return work(connection)
}

// program is the path of one of PostgreSQL's programs.
func (c *Cluster) program(name string) string {
	return filepath.Join(c.binaries, name)
}

// databaseURL is the URL of a database on a server that speaks no TLS.
func databaseURL(user, password, address, database string) string {
	location := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: address, Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return location.String()
}

// randomName is an identifier of SQL that was never used, in lower case.
func randomName() string {
	return strings.ToLower(rand.Text())
}
