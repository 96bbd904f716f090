//go:build slow

package serving_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// TestPasswordIsReplaced changes the password of the server's role, and moves a new password file into place, after which
// connections end. The URL also lists another server, whose line has another password.
func TestPasswordIsReplaced(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	parsed, err := url.Parse(cluster.CreateDatabase(t))
	processtest.Must(t, err)
	database := parsed.Path[1:]
	cluster.Exec(t, database, "CREATE ROLE server LOGIN PASSWORD 'first'", "GRANT CREATE ON SCHEMA public TO server")
	away := "127.0.0.1:" + strconv.Itoa(processtest.FreePort(t))
	dir := t.TempDir()
	file := filepath.Join(dir, "pgpass")
	replaceFile := func(user, password string) {
		lines := fmt.Sprintf("%s:*:server:other\n%s:*:%s:%s\n", away, cluster.Address(), user, password)
		processtest.Must(t, os.WriteFile(file+".new", []byte(lines), 0o600))
		processtest.Must(t, os.Rename(file+".new", file))
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
