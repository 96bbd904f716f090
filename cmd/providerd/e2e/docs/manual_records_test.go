//go:build slow

package docs_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// asRole returns the URL of a database for another role, to which it gives the same password.
func asRole(t *testing.T, cluster *postgrestest.Cluster, database, role string) string {
	t.Helper()
	parsed, err := url.Parse(database)
	processtest.Must(t, err)
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
	providerdtest.RunShell(t, dir, "export PROVIDERD_TO='"+database+"'\n"+
		"providerd copy --from sqlite:data/providerd.db --keyset data/keyset.json")
	examples := providerdtest.Examples(t, recordsPage, 3)
	asSuperuser := "export ADMIN_DATABASE='" + database + "'\n"
	providerdtest.RunShell(t, dir, asSuperuser+examples[0].Commands)
	providerdtest.RunShell(t, dir, asSuperuser+examples[2].Commands)
	asPlatform := "export PLATFORM_DATABASE='" + asRole(t, cluster, database, "platform") + "'\n"
	examples[1].CheckOutput(t, providerdtest.RunShell(t, dir, asPlatform+examples[1].Commands))

	asReader := asRole(t, cluster, database, "reader")
	program := providerdtest.CodeBlocks(providerdtest.ReadFile(t, providerdtest.ManualDir+recordsPage), "go")[0]
	printed := runProgram(t, dir, program, "PROVIDERD_DATABASE="+asReader, "PROVIDERD_KEYSET=data/keyset.json")
	if !regexp.MustCompile(`^1 \w{40} \w{128}\n$`).MatchString(printed) {
		t.Errorf("the program prints %q", printed)
	}
	for name, commands := range map[string]string{
		"platform": asPlatform + `psql "$PLATFORM_DATABASE" --command 'SELECT secret FROM providers'`,
		"reader":   `psql '` + asReader + `' --command 'DELETE FROM providers'`,
	} {
		output, _ := providerdtest.ShellCommand(t, dir, commands).CombinedOutput()
		if !strings.Contains(string(output), "permission denied for table providers") {
			t.Errorf("%s: %s", name, output)
		}
	}
}
