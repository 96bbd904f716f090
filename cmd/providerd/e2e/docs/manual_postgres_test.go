//go:build slow

package docs_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// withCluster replaces the database that commands name by an empty one of a cluster, with the password in a file of dir.
func withCluster(t *testing.T, cluster *postgrestest.Cluster, dir, commands string) string {
	t.Helper()
	parsed, err := url.Parse(cluster.CreateDatabase(t))
	processtest.Must(t, err)
	password, _ := parsed.User.Password()
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "pgpass"), []byte("*:*:*:*:"+password+"\n"), 0o600))
	parsed.User = url.User(parsed.User.Username())
	named := regexp.MustCompile(`postgres://providerd@[a-z0-9.,]+/providerd(\?sslmode=verify-full)?`)
	if len(named.FindAllString(commands, -1)) != 1 {
		t.Fatalf("the commands must name one database: %s", commands)
	}
	return named.ReplaceAllLiteralString(commands, parsed.String())
}

// TestManualCopies runs the command that moves a database to PostgreSQL.
func TestManualCopies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	providerdtest.Fill(t, dir, 3)
	commands := withCluster(t, postgrestest.NewCluster(t), dir, providerdtest.Examples(t, "backup.md", 1)[0].Commands)
	database := regexp.MustCompile(`postgres://\S+`).FindString(commands)
	list := "providerd provider list --database " + database + " --keyset data/keyset.json --output json >listed\n"
	providerdtest.RunShell(t, dir, "export PGPASSFILE=pgpass\n"+commands+list+`grep '"pk":3,' listed`)
}

// TestManualReplicas runs the commands that start a replica.
func TestManualReplicas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	commands := providerdtest.Examples(t, "postgres.md", 1)[0].Commands
	commands = withCluster(t, postgrestest.NewCluster(t), dir, strings.ReplaceAll(commands, "/var/lib/providerd", dir))
	const serving = `providerd serve --listen 0.0.0.0:8080 `
	if strings.Count(commands, serving) != 1 {
		t.Fatalf("the commands start no replica: %s", commands)
	}
	begun := strings.Replace(commands, serving,
		`coproc providerd serve --listen 127.0.0.1:0; replica=$COPROC_PID; read -r -u "${COPROC[0]}" `, 1)
	providerdtest.RunShell(t, dir, begun+`kill "$replica"; wait "$replica"`)
}
