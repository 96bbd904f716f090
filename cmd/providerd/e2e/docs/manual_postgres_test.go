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
	parsed := processtest.Try(url.Parse(cluster.CreateDatabase(t))).Must(t)
	password, _ := parsed.User.Password()
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "pgpass"), []byte("*:*:*:*:"+password+"\n"), 0o600))
	parsed.User = url.User(parsed.User.Username())
	named := regexp.MustCompile(`postgres://providerd@[a-z0-9.,]+/providerd(\?sslmode=verify-full)?`)
	processtest.Require(t, len(named.FindAllString(commands, -1)) == 1,
		"the commands must name one database: %s", commands)
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
	processtest.Require(t, strings.Count(commands, serving) == 1, "the commands start no replica: %s", commands)
	begun := strings.Replace(commands, serving,
		`coproc providerd serve --listen 127.0.0.1:0; replica=$COPROC_PID; read -r -u "${COPROC[0]}" `, 1)
	providerdtest.RunShell(t, dir, begun+`kill "$replica"; wait "$replica"`)
}

// asRole returns the URL of a database for another role, to which it gives the same password.
func asRole(t *testing.T, cluster *postgrestest.Cluster, database, role string) string {
	t.Helper()
	parsed := processtest.Try(url.Parse(database)).Must(t)
	cluster.Exec(t, strings.TrimPrefix(parsed.Path, "/"), "ALTER ROLE "+role+" PASSWORD '"+cluster.Password+"'")
	parsed.User = url.UserPassword(role, cluster.Password)
	return parsed.String()
}

// TestManualRecords reads a record with SQL and with the program in Go, as roles that cannot change it.
func TestManualRecords(t *testing.T) {
	t.Parallel()
	cluster, dir := postgrestest.NewCluster(t), t.TempDir()
	createShown(t, dir)
	database := cluster.CreateDatabase(t)
	examples := providerdtest.Examples(t, recordsPage, 3)
	copyFromManual(t, dir, "platform.sql")
	asSuperuser := "export ADMIN_DATABASE='" + database + "'\n"
	early, err := providerdtest.ShellCommand(t, dir, asSuperuser+examples[0].Commands).CombinedOutput()
	processtest.Expect(t, err != nil && strings.Count(string(early), "ERROR") == 1, "without tables: %v, %s", err, early)
	providerdtest.RunShell(t, dir, "export PROVIDERD_TO='"+database+"'\n"+
		"providerd copy --from sqlite:data/providerd.db --keyset data/keyset.json")
	providerdtest.RunShell(t, dir, asSuperuser+strings.Repeat(examples[0].Commands, 2))
	providerdtest.RunShell(t, dir, asSuperuser+examples[2].Commands)
	asPlatform := "export PLATFORM_DATABASE='" + asRole(t, cluster, database, "platform") + "'\n"
	examples[1].CheckOutput(t, providerdtest.RunShell(t, dir, asPlatform+examples[1].Commands))
	for table, kept := range map[string]string{"providers": "secret,remote_address", "events": "remote_address"} {
		columns := `psql "$PLATFORM_DATABASE" --command 'SELECT ` + kept + ` FROM platform_` + table + `'`
		if output, err := providerdtest.ShellCommand(t, dir, asPlatform+columns).CombinedOutput(); err == nil {
			t.Errorf("platform_%s shows %s", table, output)
		}
	}

	asReader := asRole(t, cluster, database, "reader")
	program := providerdtest.ReadFile(t, providerdtest.ManualDir+"read-records.go.txt")
	printed := runProgram(t, dir, program, "PROVIDERD_DATABASE="+asReader, "PROVIDERD_KEYSET=data/keyset.json")
	processtest.Expect(t, regexp.MustCompile(`^1 \w{40} \w{128}\n$`).MatchString(printed),
		"the program prints %q", printed)
	for name, commands := range map[string]string{
		"platform": asPlatform + `psql "$PLATFORM_DATABASE" --command 'SELECT secret FROM providers'`,
		"reader":   `psql '` + asReader + `' --command 'DELETE FROM providers'`,
	} {
		output, _ := providerdtest.ShellCommand(t, dir, commands).CombinedOutput()
		processtest.Expect(t, strings.Contains(string(output), "permission denied for table providers"),
			"%s: %s", name, output)
	}
}
