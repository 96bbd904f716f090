//go:build slow

package postgres_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// Each mistake in a URL, a server or a role has one line: the cause, then one remedy. No line has a password or a user.
func TestMistakes(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	authority := secureCluster(t, cluster)
	plain := postgrestest.NewCluster(t)
	dir := t.TempDir()
	readable := filepath.Join(dir, "readable")
	processtest.Must(t, os.WriteFile(readable, []byte("*:*:*:*:canary\n"), 0o640))
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
	for _, mistake := range []struct{ what, url, want string }{
		{
			"nothing listens", at("127.0.0.1:1", "?sslmode=disable"),
			`connect to the database: storage is unavailable: no connection: SERVER: connection refused; start the primary, or correct the host and port in the URL`,
		},
		{
			"nothing listens, with TLS and without", at("127.0.0.1:1", ""),
			`connect to the database: storage is unavailable: no connection: SERVER: connection refused; start the primary, or correct the host and port in the URL`,
		},
		{
			"no such host", at("db.invalid", "?sslmode=disable"),
			`connect to the database: storage is unavailable: no connection: look up db.invalid: REASON; correct the host in the URL`,
		},
		{
			"no such socket", at("", "?host=/nowhere"),
			`connect to the database: storage is unavailable: no connection: /nowhere/.s.PGSQL.5432: no such file or directory; start the primary, or correct the host and port in the URL`,
		},
		{
			"silent server", at(fake(t, nil), "?sslmode=disable&connect_timeout=1"),
			`connect to the database: storage is unavailable: no connection: SERVER: no response; start the primary, or allow connections to it through the firewall`,
		},
		{
			"another service", at(fake(t, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")), "?sslmode=disable"),
			`connect to the database: storage is unavailable: no connection: SERVER: invalid body length: expected at most 1073741822, but got 1414811691; correct the host and port in the URL, or see the log of the server at that address`,
		},
		{
			"server closes the connection", at(fake(t, []byte{}), "?sslmode=disable"),
			`connect to the database: storage is unavailable: no connection: SERVER: unexpected EOF; correct the host and port in the URL, or see the log of the server at that address`,
		},
		{
			"server starts up", at(refusing(t, "57P03", "the database system is starting up"), "?sslmode=disable"),
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: the database system is starting up (SQLSTATE 57P03); wait until the server accepts connections, or list all servers in the URL`,
		},
		{
			"server without TLS", strings.Replace(plain.URL("postgres"), "disable", "require", 1),
			`connect to the database: storage is unavailable: no connection: SERVER: server refused TLS connection; turn ssl on in the server, or set sslmode=disable in the URL if the network is safe`,
		},
		{
			"unknown authority", strings.Replace(server, "127.0.0.1", "localhost", 1) + name + "?sslmode=verify-full",
			`connect to the database: storage is unavailable: no connection: SERVER: x509: certificate signed by unknown authority; set sslrootcert in the URL to the server's CA certificate, and use a host name that the server's certificate contains`,
		},
		{
			"another name", server + name + "?sslmode=verify-full&sslrootcert=" + authority,
			`connect to the database: storage is unavailable: no connection: SERVER: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs; set sslrootcert in the URL to the server's CA certificate, and use a host name that the server's certificate contains`,
		},
		{
			"no file of the authority", server + name + "?sslmode=verify-full&sslrootcert=/nowhere",
			`parse the database URL: failed to configure TLS (unable to read CA file: open /nowhere: no such file or directory); correct it in the URL or in the PG variables of the environment`,
		},
		{
			"sslmode=on", server + name + "?sslmode=on",
			`parse the database URL: failed to configure TLS (sslmode is invalid); set it to disable, allow, prefer, require, verify-ca or verify-full`,
		},
		{
			"port without a number", at("127.0.0.1:port", ""),
			`parse the database URL: invalid port; correct it in the URL or in the PG variables of the environment`,
		},
		{
			"wrong password", as("anyone", "canary-2", name),
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: password authentication failed for the user in the URL (SQLSTATE 28P01); correct the user in the URL, or the password in PGPASSWORD or PGPASSFILE`,
		},
		{
			"wrong password, with TLS and without", "postgres://anyone:canary@" + plain.Address() + "/postgres",
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: password authentication failed for the user in the URL (SQLSTATE 28P01); correct the user in the URL, or the password in PGPASSWORD or PGPASSFILE`,
		},
		{
			"no password", "postgres://anyone@" + cluster.Address() + "/" + name + "?sslmode=disable",
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: password authentication failed for the user in the URL (SQLSTATE 28P01); correct the user in the URL, or the password in PGPASSWORD or PGPASSFILE`,
		},
		{
			"missing password file", "postgres://anyone@" + cluster.Address() + "/" + name + "?passfile=/nowhere/pgpass",
			`password file /nowhere/pgpass: no such file or directory; write HOST:PORT:DATABASE:USER:PASSWORD into it, or unset PGPASSFILE`,
		},
		{
			"password file that others can read", "postgres://anyone@" + cluster.Address() + "/" + name + "?passfile=" + readable,
			`password file FILE: other users can access it; run chmod 600 FILE`,
		},
		{
			"role without login", as("group_role", "canary", name),
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: the role in the URL is not permitted to log in (SQLSTATE 28000); allow the role to log in, with a line in pg_hba.conf and the LOGIN attribute`,
		},
		{
			"barred by pg_hba.conf", as("barred", "canary", name),
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: pg_hba.conf rejects connection for host "127.0.0.1", the user in the URL, database "DATABASE", no encryption (SQLSTATE 28000); allow the role to log in, with a line in pg_hba.conf and the LOGIN attribute`,
		},
		{
			"missing database", as("anyone", "canary", "missing"),
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: database "missing" does not exist (SQLSTATE 3D000); create the database, or correct its name in the URL`,
		},
		{
			"closed database", as("anyone", "canary", "closed"),
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: database "closed" is not currently accepting connections (SQLSTATE 55000); allow connections to the database, or use another one`,
		},
		{
			"database without the privilege", as("anyone", "canary", "private"),
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: permission denied for database "private" (SQLSTATE 42501); grant CONNECT on the database to the role in the URL`,
		},
		{
			"schema without the privilege", as("anyone", "canary", databaseOf(t, cluster.CreateDatabase(t))),
			`migrate database: storage is unavailable: ERROR: permission denied for schema public (SQLSTATE 42501); grant the missing privilege to the role in the URL, such as GRANT ALL ON ALL TABLES IN SCHEMA public, or GRANT CREATE ON SCHEMA public to create the tables`,
		},
		{
			"too many connections", as("crowd", "canary", name),
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: too many connections for the role in the URL (SQLSTATE 53300); raise max_connections or the role's limit, or connect through PgBouncer`,
		},
		{
			"unknown parameter", with(url, "ssl_mode=require"),
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: unrecognized configuration parameter "ssl_mode" (SQLSTATE 42704); correct or remove the parameter in the URL`,
		},
		{
			"invalid value of a parameter", with(url, "work_mem=much"),
			`connect to the database: storage is unavailable: no connection: SERVER: FATAL: invalid value for parameter "work_mem": "much" (SQLSTATE 22023); correct or remove the parameter in the URL`,
		},
		{
			"missing schema", with(cluster.CreateDatabase(t), "search_path=nowhere"),
			`connect to the database: storage is unavailable: search_path is "nowhere", which contains no existing schema; create the schema, or correct search_path`,
		},
		{
			"timeout that ends transactions", with(cluster.CreateDatabase(t), "idle_in_transaction_session_timeout=1"),
			`connect to the database: storage is unavailable: idle_in_transaction_session_timeout is "1ms", which can end working transactions; set it to 0, or to 10s`,
		},
		{
			"read-only server", with(url, "default_transaction_read_only=on"),
			`connect to the database: storage is unavailable: no connection: SERVER: read only connection; start the primary, or list all servers in the URL`,
		},
	} {
		t.Run(mistake.what, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.ParseURL(mistake.url)
			if err == nil {
				err = openError(t, mistake.url)
			}
			message := strings.NewReplacer(name, "DATABASE", readable, "FILE").Replace(fmt.Sprint(err))
			message = regexp.MustCompile(`(127\.0\.0\.1|\[::1\]):\d+`).ReplaceAllString(message, "SERVER")
			message = regexp.MustCompile(`db\.invalid: [^;]+`).ReplaceAllString(message, "db.invalid: REASON")
			if message != mistake.want {
				t.Errorf("message is\n%s\nwant\n%s", message, mistake.want)
			}
		})
	}
}

// secureCluster gives a cluster a certificate for localhost, refuses a role, and returns the file of the authority.
func secureCluster(t *testing.T, cluster *postgrestest.Cluster) (authority string) {
	t.Helper()
	key, keyErr := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	encoded, encodeErr := x509.MarshalPKCS8PrivateKey(key)
	if keyErr != nil || err != nil || encodeErr != nil {
		t.Fatal(keyErr, err, encodeErr)
	}
	cluster.Write("data/server.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	cluster.Write("data/server.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})))
	hba := cluster.Path("data/pg_hba.conf")
	rules, err := os.ReadFile(hba)
	if err == nil {
		err = os.WriteFile(hba, append([]byte("host all barred all reject\n"), rules...), 0o600)
	}
	processtest.Must(t, err)
	cluster.Set(t, "ssl", "on")
	return cluster.Path("data/server.crt")
}

// fake returns the address of a server that sends one response, nil for none, to every caller.
func fake(t *testing.T, response []byte) string {
	t.Helper()
	return answering(t, func(caller net.Conn) {
		buffer := make([]byte, 4096)
		_, _ = caller.Read(buffer)
		if response == nil {
			_, _ = caller.Read(buffer)
		}
		_, _ = caller.Write(response)
	})
}

// refusing starts a fake server that responds with an error of PostgreSQL.
func refusing(t *testing.T, code, message string) string {
	t.Helper()
	response := &pgproto3.ErrorResponse{
		Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: message,
	}
	encoded, err := response.Encode(nil)
	processtest.Must(t, err)
	return fake(t, bytes.Clone(encoded))
}
