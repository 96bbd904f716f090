//go:build slow

package postgres_test

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest/processtest"
)

// Each mistake in a URL, a server or a role has one line: the cause, then one remedy. No line has a password or a user.
func TestMistakes(t *testing.T) {
	t.Parallel()
	plain, cluster := postgrestest.NewCluster(t), postgrestest.NewCluster(t)
	processtest.Run(t, cluster.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test",
		"-addext", "subjectAltName=DNS:localhost", "-keyout", "data/server.key", "-out", "data/server.crt"))
	processtest.Run(t, cluster.Command("sed", "--in-place", "1i host all barred all reject", "data/pg_hba.conf"))
	cluster.Set(t, "ssl", "on")
	url := cluster.CreateDatabase(t)
	name := databaseOf(t, url)
	cluster.Exec(t, name, "CREATE ROLE anyone LOGIN PASSWORD 'canary'", "CREATE ROLE barred LOGIN PASSWORD 'canary'",
		"CREATE ROLE group_role PASSWORD 'canary'", "CREATE ROLE crowd LOGIN PASSWORD 'canary' CONNECTION LIMIT 0",
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC", "CREATE DATABASE closed ALLOW_CONNECTIONS false",
		"CREATE DATABASE private", "REVOKE CONNECT ON DATABASE private FROM PUBLIC")
	server := "postgres://postgres:" + cluster.Password + "@" + cluster.Address() + "/"
	as := func(user, password, database string) string {
		return "postgres://" + user + ":" + password + "@" + cluster.Address() + "/" + database + "?sslmode=disable"
	}
	at := func(address, parameters string) string {
		return "postgres://ada:canary@" + address + "/shop" + parameters
	}
	startingUp, err := (&pgproto3.ErrorResponse{
		Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P03", Message: "the database system is starting up",
	}).Encode(nil)
	processtest.Must(t, err)
	const unavailable = "connect to the database: storage is unavailable: "
	const noConnection = unavailable + "no connection: "
	expect := func(what, url, want string) {
		t.Helper()
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			message := strings.ReplaceAll(fmt.Sprint(openError(t, url)), name, "DATABASE")
			message = regexp.MustCompile(`(127\.0\.0\.1|\[::1\]):\d+`).ReplaceAllString(message, "SERVER")
			message = regexp.MustCompile(`db\.invalid: [^;]+`).ReplaceAllString(message, "db.invalid: REASON")
			processtest.Expect(t, message == want, "message is\n%s\nwant\n%s", message, want)
		})
	}
	expect("nothing listens", at("127.0.0.1:1", "?sslmode=disable"),
		noConnection+"SERVER: connection refused; start the primary, or correct the host and port in the URL")
	expect("nothing listens, with TLS and without", at("127.0.0.1:1", ""),
		noConnection+"SERVER: connection refused; start the primary, or correct the host and port in the URL")
	expect("no such host", at("db.invalid", "?sslmode=disable"),
		noConnection+"look up db.invalid: REASON; correct the host in the URL")
	expect("no such socket", at("", "?host=/nowhere"),
		noConnection+"/nowhere/.s.PGSQL.5432: no such file or directory; start the primary, or correct the host and port in the URL")
	expect("silent server", at(fake(t, nil), "?sslmode=disable&connect_timeout=1"),
		noConnection+"SERVER: no response; start the primary, or allow connections to it through the firewall")
	expect("another service", at(fake(t, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")), "?sslmode=disable"),
		noConnection+"SERVER: invalid body length: expected at most 1073741822, but got 1414811691; correct the host and port in the URL, or see the log of the server at that address")
	expect("server closes the connection", at(fake(t, []byte{}), "?sslmode=disable"),
		noConnection+"SERVER: unexpected EOF; correct the host and port in the URL, or see the log of the server at that address")
	expect("server starts up", at(fake(t, startingUp), "?sslmode=disable"),
		noConnection+"SERVER: FATAL: the database system is starting up (SQLSTATE 57P03); wait until the server accepts connections, or list all servers in the URL")
	expect("server without TLS", strings.Replace(plain.URL("postgres"), "disable", "require", 1),
		noConnection+"SERVER: server refused TLS connection; turn ssl on in the server, or set sslmode=disable in the URL if the network is safe")
	expect("unknown authority", strings.Replace(server, "127.0.0.1", "localhost", 1)+name+"?sslmode=verify-full",
		noConnection+"SERVER: x509: certificate signed by unknown authority; set sslrootcert in the URL to the server's CA certificate, and use a host name that the server's certificate contains")
	expect("another name", server+name+"?sslmode=verify-full&sslrootcert="+cluster.Path("data/server.crt"),
		noConnection+"SERVER: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs; set sslrootcert in the URL to the server's CA certificate, and use a host name that the server's certificate contains")
	expect("wrong password", as("anyone", "canary-2", name),
		noConnection+"SERVER: FATAL: password authentication failed for the user in the URL (SQLSTATE 28P01); correct the user or the password in the URL")
	expect("wrong password, with TLS and without", "postgres://anyone:canary@"+plain.Address()+"/postgres",
		noConnection+"SERVER: FATAL: password authentication failed for the user in the URL (SQLSTATE 28P01); correct the user or the password in the URL")
	expect("no password", "postgres://anyone@"+cluster.Address()+"/"+name+"?sslmode=disable",
		noConnection+"SERVER: FATAL: password authentication failed for the user in the URL (SQLSTATE 28P01): no password was given; set PGPASSWORD or PGPASSFILE, and write the user into the URL as postgres://USER@HOST/DATABASE")
	expect("no database", as("anyone", "canary", ""),
		noConnection+`SERVER: FATAL: database "anyone" does not exist (SQLSTATE 3D000); append /DATABASE to the URL, which names none`)
	expect("role without login", as("group_role", "canary", name),
		noConnection+"SERVER: FATAL: the role in the URL is not permitted to log in (SQLSTATE 28000); allow the role to log in, with a line in pg_hba.conf and the LOGIN attribute")
	expect("barred by pg_hba.conf", as("barred", "canary", name),
		noConnection+`SERVER: FATAL: pg_hba.conf rejects connection for host "127.0.0.1", the user in the URL, database "DATABASE", no encryption (SQLSTATE 28000); allow the role to log in, with a line in pg_hba.conf and the LOGIN attribute`)
	expect("missing database", as("anyone", "canary", "missing"),
		noConnection+`SERVER: FATAL: database "missing" does not exist (SQLSTATE 3D000); create the database, or correct its name in the URL`)
	expect("closed database", as("anyone", "canary", "closed"),
		noConnection+`SERVER: FATAL: database "closed" is not currently accepting connections (SQLSTATE 55000); allow connections to the database, or use another one`)
	expect("database without the privilege", as("anyone", "canary", "private"),
		noConnection+`SERVER: FATAL: permission denied for database "private" (SQLSTATE 42501); grant CONNECT on the database to the role in the URL`)
	expect("schema without the privilege", as("anyone", "canary", databaseOf(t, cluster.CreateDatabase(t))),
		"migrate database: storage is unavailable: ERROR: permission denied for schema public (SQLSTATE 42501); grant the role in the URL USAGE on it, and to create the tables CREATE, too")
	expect("too many connections", as("crowd", "canary", name),
		noConnection+"SERVER: FATAL: too many connections for the role in the URL (SQLSTATE 53300); raise max_connections or the role's limit, or connect through PgBouncer")
	expect("unknown parameter", with(url, "ssl_mode=require"),
		noConnection+`SERVER: FATAL: unrecognized configuration parameter "ssl_mode" (SQLSTATE 42704); correct or remove the parameter in the URL`)
	expect("invalid value of a parameter", with(url, "work_mem=much"),
		noConnection+`SERVER: FATAL: invalid value for parameter "work_mem": "much" (SQLSTATE 22023); correct or remove the parameter in the URL`)
	expect("missing schema", with(cluster.CreateDatabase(t), "search_path=nowhere"),
		unavailable+`search_path is "nowhere", which contains no existing schema; correct search_path, or create the schema`)
	expect("timeout that ends transactions", with(cluster.CreateDatabase(t), "idle_in_transaction_session_timeout=1"),
		unavailable+`idle_in_transaction_session_timeout is "1ms", which can end working transactions; set it to 0, or to 10s`)
	expect("pooler in statement mode", postgrestest.NewPgBouncer(t, cluster, "pool_mode = statement")(name),
		unavailable+"FATAL: transaction blocks not allowed in statement pooling mode (SQLSTATE 08P01); set pool_mode of the pooler to transaction or session")
	expect("read-only server", with(url, "default_transaction_read_only=on"),
		noConnection+"SERVER: read only connection; start the primary, or list all servers in the URL; a primary needs default_transaction_read_only = off")
}

// fake returns the address of a server that sends one response, nil for none, to every caller.
func fake(t *testing.T, response []byte) string {
	t.Helper()
	return processtest.Answering(t, func(caller net.Conn) {
		buffer := make([]byte, 4096)
		_, _ = caller.Read(buffer)
		if response == nil {
			_, _ = caller.Read(buffer)
		}
		_, _ = caller.Write(response)
	})
}

// Settings of the role or the database do no harm, whether a pooler is in between or not: while one caller sends every
// character, the creates of others are stored, and every value is stored in UTF-8 and returned as sent. The schema is
// found unchanged, although settings change how the server writes it.
func TestSettingsOfTheDatabase(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	pooled := postgrestest.NewPgBouncer(t, cluster)
	for name, settings := range map[string][]string{
		"LATIN1":    {"client_encoding = LATIN1", "standard_conforming_strings = off"},
		"SQL_ASCII": {"client_encoding = SQL_ASCII", "array_nulls = off"},
		"UTF8":      {"client_encoding = UTF8", "DateStyle = 'SQL, DMY'", "TimeZone = 'Asia/Kathmandu'"},
		"WIN1252":   {"client_encoding = WIN1252", "DateStyle = 'German'", "standard_conforming_strings = off"},
		"spelling":  {"quote_all_identifiers = on", "IntervalStyle = sql_standard", "TimeZone = 'America/St_Johns'", "extra_float_digits = -15"},
		"isolation": {"default_transaction_isolation = serializable", "default_transaction_deferrable = on"},
		"log":       {"client_min_messages = log", "log_duration = on"},
		"debug1":    {"client_min_messages = debug1", "log_duration = on"},
		"debug5":    {"client_min_messages = debug5", "log_duration = on"},
	} {
		for _, isPooled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, pooled: %v", name, isPooled), func(t *testing.T) {
				t.Parallel()
				direct := cluster.CreateDatabase(t)
				url := direct
				for _, setting := range settings {
					cluster.Exec(t, "postgres", "ALTER DATABASE "+databaseOf(t, url)+" SET "+setting,
						"ALTER ROLE postgres IN DATABASE "+databaseOf(t, url)+" SET "+setting)
				}
				if isPooled {
					url = pooled(databaseOf(t, url))
				}
				opened := openStore(t, url, newKeyset(t))
				createEveryCharacter(t, opened)
				processtest.Must(t, opened.Ready(t.Context()))
				if _, err := inspect(t, url).Check(t.Context()); err != nil {
					t.Error(err)
				}
				const selectSize = "SELECT sum(octet_length(name)) FROM providers WHERE client_id LIKE 'characters %'"
				if size := query[int](t, inspect(t, direct), selectSize); size != len(strings.Join(everyCharacter(), "")) {
					t.Errorf("the names have %d bytes", size)
				}
			})
		}
	}
}

func createEveryCharacter(t *testing.T, opened *store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for i := range 4 {
		others.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				createEach(t, opened, fmt.Sprint(i, "/", n))
			}
		})
	}
	for i, name := range everyCharacter() {
		request, settings := keyedRequest(fmt.Sprint("characters ", i))
		request.Name, settings.ClientSecret = name, seal.NewSecret(name)
		record, _, err := opened.Providers.CreateOAuth2(t.Context(), request, settings)
		if err != nil {
			t.Errorf("name %.10q: %v", name, err)
			continue
		}
		read, err := opened.Providers.Get(t.Context(), record.PK)
		if err != nil || read.Common().Name != name || !read.Common().CreatedAt.Equal(record.CreatedAt.Time) ||
			read.(records.OAuth2Provider).ClientSecret.Reveal() != name {
			t.Errorf("name %.10q: read %.10q of %v, want %v, %v",
				name, read.Common().Name, read.Common().CreatedAt, record.CreatedAt, err)
		}
	}
	cancel()
	others.Wait()
	for _, err := range opened.Providers.Opened(t.Context(), opened.Providers.List(t.Context(), store.Filter{}, 0)) {
		processtest.Check(t, err)
	}
}

// everyCharacter returns texts that together have every character except U+0000.
func everyCharacter() (texts []string) {
	var all []rune
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) {
			all = append(all, r)
		}
	}
	for part := range slices.Chunk(all, 30_000) {
		texts = append(texts, string(part))
	}
	return texts
}

// TestStoreBehindAPooler runs the suite with a pooler, which may give each transaction another connection.
func TestStoreBehindAPooler(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	cluster := postgrestest.NewCluster(t)
	pooled := postgrestest.NewPgBouncer(t, cluster)
	runSuite(t, cluster, func(url string) string { return pooled(databaseOf(t, url)) })
}
