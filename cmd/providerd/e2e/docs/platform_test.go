//go:build slow

package docs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// copyFromManual copies files that a page links to.
func copyFromManual(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		text := providerdtest.ReadFile(t, providerdtest.ManualDir+name)
		processtest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// platform is a fleet whose database has the role of the platform.
type platform struct {
	*providerdtest.Fleet
	cluster        *postgrestest.Cluster
	asAdmin, asOne string
}

// newPlatform starts a server over a database of a cluster, and of its standbys, and creates the role.
func newPlatform(t *testing.T, cluster *postgrestest.Cluster, standbys ...*postgrestest.Cluster) platform {
	t.Helper()
	admin := cluster.CreateDatabase(t)
	all := processtest.Try(url.Parse(admin)).Must(t)
	for _, standby := range standbys {
		all.Host += "," + standby.Address()
	}
	p := platform{providerdtest.StartFleet(t, all.String(), 1), cluster, admin, ""}
	copyFromManual(t, p.Dir, "platform.sql", "follow-events.mjs", "open-secrets.mjs", "OpenSecrets.java")
	providerdtest.RunShell(t, p.Dir, "psql --quiet '"+admin+"' --set ON_ERROR_STOP=1 --file platform.sql")
	p.asOne = asRole(t, cluster, admin, "platform")
	return p
}

// query returns what psql prints as the platform, without alignment.
func (p platform) query(t *testing.T, statement string) string {
	t.Helper()
	return providerdtest.RunShell(t, p.Dir, "psql --no-align --tuples-only '"+p.asOne+"' --command \""+statement+`"`)
}

func (p platform) create(t *testing.T, body string) {
	t.Helper()
	path := providerdtest.OAuth2Path
	if strings.Contains(body, "credentials") {
		path = "/api/v3/providers/workspace_directory/"
	}
	p.Replica(0).ExpectPost(t, p.Client, http.StatusCreated, path, body, "")
}

const (
	parsedBody = `{"name": "Parsed", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01",
		"redirect_uris": "https://a.example.com/\r\nmyapp:b\n", "access_code_validity": "microseconds=1;milliseconds=20",
		"access_token_validity": "hours=1;minutes=30;hours=0.5", "refresh_token_validity": "weeks=999999999;days=1.5",
		"property_mappings": ["3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e02", "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"]}`
	publicBody = `{"name": "Public", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", "client_type": "public"}`
	staffBody  = `{"name": "Staff", "delegated_subject": "admin@example.com", "default_group_email_domain": "example.com",
		"credentials": {"key": "é|\n", "n": 1.50}}`
)

// TestPlatformParsesSettings reads lists, durations and applications with SQL, and every setting except secrets.
func TestPlatformParsesSettings(t *testing.T) {
	t.Parallel()
	p := newPlatform(t, postgrestest.NewCluster(t))
	p.create(t, parsedBody)
	p.create(t, staffBody)
	p.RunCommand(t, "application", "create", "wiki", "--name", "Wiki", "--provider", "1", "--backchannel", "2")
	const hidden = "SELECT column_name FROM information_schema.columns WHERE table_name = 'providers' EXCEPT " +
		"SELECT column_name FROM information_schema.columns WHERE table_name = 'platform_providers' ORDER BY 1"
	command := "psql --no-align --tuples-only '" + p.asAdmin + "' --command \"" + hidden + `"`
	processtest.Equal(t, providerdtest.RunShell(t, p.Dir, command),
		"generated\nidempotency_key\nremote_address\nrequest_id\nsecret\nuid\n", "columns that the platform sees")
	got := p.query(t, "SELECT * FROM platform_settings ORDER BY pk")
	const want = "1|{https://a.example.com/,myapp:b}|{3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e02,3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01}|{}|{}|" +
		"0.020001|7200.0|604799999524800.0|wiki|Wiki||\n2||{}|{}|{}||||||wiki|Wiki\n"
	processtest.Equal(t, got, want, "settings")
}

// TestManualOpensSecrets opens secrets with the programs in Node and Java, after a rotation and a new master key, of
// which the program has a copy.
func TestManualOpensSecrets(t *testing.T) {
	t.Parallel()
	processtest.NeedPrograms(t, "node", "node")
	processtest.NeedPrograms(t, "java", "java")
	p := newPlatform(t, postgrestest.NewCluster(t))
	for _, body := range []string{parsedBody, staffBody, publicBody} {
		p.create(t, body)
		p.RunCommand(t, "key", "rotate")
	}
	keyset := filepath.Join(p.Dir, "keyset.json")
	p.RunCommand(t, "key", "create", "--keyset", "keyset.json", "--add", "data/keyset.json")
	processtest.Must(t, os.Rename(keyset, p.Keyset()))
	p.RunCommand(t, "key", "rewrap")
	p.create(t, providerdtest.OAuth2Body)
	p.RunCommand(t, "key", "create", "--keyset", "keyset.json", "--drop", "data/keyset.json")

	var want []string
	for _, record := range p.Stored(t, p.URL) {
		want = append(want, record.Secret)
	}
	processtest.Require(t, len(want) == 4 && len(want[0]) == 128 && want[1] == `{"key":"é|\n","n":1.50}` && want[2] == "",
		"the secrets are %q", want)
	p.cluster.Exec(t, databaseOf(t, p.asAdmin), "CREATE ROLE reader LOGIN", "GRANT SELECT ON providers, keyset TO reader")
	commands := "export READER_DATABASE='" + asRole(t, p.cluster, p.asAdmin, "reader") + "'\n" +
		providerdtest.Examples(t, recordsPage, 1)[0].Commands
	for _, program := range []string{"node open-secrets.mjs", "java OpenSecrets.java"} {
		output := providerdtest.RunShell(t, p.Dir, strings.Replace(commands, "node open-secrets.mjs", program, 1))
		var got []string
		for line := range strings.Lines(output) {
			_, secret, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "|")
			got = append(got, secret)
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s prints %s, want the secrets %q", program, output, want)
		}
		moved := strings.NewReplacer("node open-secrets.mjs", program, "SELECT uid", "SELECT gen_random_uuid()").Replace(commands)
		if output, err := providerdtest.ShellCommand(t, p.Dir, moved).CombinedOutput(); err == nil {
			t.Errorf("%s opens secrets of other rows: %s", program, output)
		}
		example := strings.ReplaceAll(program, " ", " "+providerdtest.Path(t, providerdtest.ManualDir)+"/") +
			" example-keyset.json <example-secrets.txt"
		copyFromManual(t, p.Dir, "example-keyset.json", "example-secrets.txt")
		processtest.Equal(t, strings.Count(providerdtest.RunShell(t, p.Dir, example), "|example-secret\n"), 1, "secrets printed by %s", example)
		const incomplete = "row 1 is incomplete, or has values of several rows; print rows with psql --no-align --tuples-only\n"
		for mistake, want := range map[string]string{
			"PROGRAM </dev/null":                                            "usage: " + program + " KEYSET-FILE <ROWS\n",
			"PROGRAM nowhere.json </dev/null":                               "nowhere.json is not a keyset file: ",
			"PROGRAM keyset.json <example-secrets.txt":                      "no key has the id ",
			"head -c 60 example-secrets.txt | PROGRAM example-keyset.json":  incomplete,
			"head -c 150 example-secrets.txt | PROGRAM example-keyset.json": incomplete,
			"tr -d 0-3 <example-secrets.txt | PROGRAM example-keyset.json":  incomplete,
		} {
			output, err := providerdtest.ShellCommand(t, p.Dir, strings.ReplaceAll(mistake, "PROGRAM", program)).CombinedOutput()
			if err == nil || !strings.HasPrefix(string(output), want) || strings.Count(string(output), "\n") != 1 {
				t.Errorf("%s prints %s", mistake, output)
			}
		}
	}
}

func databaseOf(t *testing.T, location string) string {
	t.Helper()
	parsed := processtest.Try(url.Parse(location)).Must(t)
	return parsed.Path[1:]
}

// addEvent is an event that commands add in their transactions.
const addEvent = `INSERT INTO events
	(at, event, subject, kind, name, fields, caller, request_id, remote_address, os_user)
	VALUES (now(), 'key rotated', 1, '', '', '', '', '', '', $1)`

// TestManualFollowsEvents follows events with the program in Node, through a failover to the synchronous standby. It
// must print each event in order, none while a transaction that can have a lower id is open, and none that the failover
// undoes.
func TestManualFollowsEvents(t *testing.T) {
	t.Parallel()
	processtest.NeedPrograms(t, "node", "node", "npm")
	primary := postgrestest.NewCluster(t)
	standby := primary.AddStandby(t)
	primary.RequireStandby(t, standby)
	p := newPlatform(t, primary, standby)
	install, follow, _ := strings.Cut(providerdtest.Examples(t, recordsPage, 1)[0].Commands, "\n")
	providerdtest.RunShell(t, p.Dir, install)
	urls := "'" + p.asOne + "' '" + strings.Replace(p.asOne, primary.Address(), standby.Address(), 1) + "'"
	follow = "exec " + strings.Replace(follow, `"$PLATFORM_DATABASE"`, urls, 1)
	follower := processtest.Try(processtest.Start(providerdtest.ShellCommand(t, p.Dir, follow))).Must(t)
	t.Cleanup(func() { _ = follower.Kill() })

	// An event has a lower id than that of the create, and is committed later.
	other := processtest.Try(pgx.Connect(t.Context(), p.asAdmin)).Must(t)
	late, err := other.Begin(t.Context())
	processtest.Must(t, err)
	processtest.Try(late.Exec(t.Context(), "SELECT pg_current_xact_id()")).Must(t)
	processtest.Try(late.Exec(t.Context(), addEvent, "late")).Must(t)
	p.create(t, providerdtest.OAuth2Body)
	awaitQuery(t, primary, "query LIKE '%xmin%'")
	processtest.Must(t, late.Commit(t.Context()))
	awaitEvents(t, follower, "late", `"event":"provider created","subject":"1"`)
	p.RunCommand(t, "provider", "update", "1", "name=Wiki", "--yes")
	awaitEvents(t, follower, `"fields":"name"`)

	// An event is visible, but its commit was canceled while it waited for the standby. No message of the program may wait
	// before.
	processtest.Must(t, follower.Command.Process.Signal(syscall.SIGSTOP))
	primary.Await(t, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'platform' AND state = 'active')")
	standby.Kill()
	canceled := make(chan error)
	go func() {
		_, err := other.Exec(t.Context(), addEvent, "undone")
		canceled <- err
	}()
	primary.Await(t, `SELECT coalesce(bool_or(pg_cancel_backend(pid)), false) FROM pg_stat_activity
		WHERE wait_event = 'SyncRep' AND query LIKE 'INSERT INTO events%'`)
	processtest.Must(t, <-canceled, other.Close(t.Context()), follower.Command.Process.Signal(syscall.SIGCONT))
	awaitQuery(t, primary, "wait_event = 'SyncRep'")
	primary.Await(t, `SELECT coalesce(bool_or(pg_cancel_backend(pid)), false) FROM pg_stat_activity
		WHERE wait_event = 'SyncRep' AND usename = 'platform'`)
	processtest.WaitUntil(t, "the program notices the warning", func() bool {
		return strings.Contains(follower.Stderr.String(), "canceling wait for synchronous replication")
	})

	primary.Kill()
	standby.Start(t)
	standby.Promote(t)
	processtest.Must(t, os.WriteFile(filepath.Join(p.Dir, "secret.txt"), []byte("a new secret"), 0o600))
	p.RunCommand(t, "provider", "update", "1", "client_secret=@secret.txt", "--yes")
	var created providerdtest.Record
	processtest.Must(t, processtest.Poll(func() (err error) {
		created, err = p.Replica(0).CreateOnce(p.Client, "after-the-failover")
		return err
	}))
	p.RunCommand(t, "provider", "delete", "1", "--yes")
	awaitEvents(t, follower, `"fields":"client_secret"`, `"event":"provider deleted","subject":"1"`,
		fmt.Sprintf(`"event":"provider created","subject":"%d"`, created.PK))

	stored := providerdtest.RunShell(t, p.Dir, "psql --no-align --tuples-only '"+standby.URL(databaseOf(t, p.asAdmin))+
		"' --command 'SELECT id FROM events ORDER BY id'")
	var printed []string
	for line := range strings.Lines(follower.Stdout.String()) {
		var event struct{ ID string }
		processtest.Must(t, json.Unmarshal([]byte(line), &event))
		printed = append(printed, event.ID)
	}
	if want := strings.Fields(stored); !slices.Equal(slices.Compact(printed), want) {
		t.Errorf("printed %v, want %v: %s%s", printed, want, follower.Stdout, follower.Stderr)
	}
}

// awaitQuery waits until the platform begins a query that a condition selects.
func awaitQuery(t *testing.T, cluster *postgrestest.Cluster, condition string) {
	t.Helper()
	cluster.Await(t, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'platform' AND query_start > $1 AND "+
		condition+")", time.Now())
}

// awaitEvents waits until each of some texts is printed.
func awaitEvents(t *testing.T, follower *processtest.Child, texts ...string) {
	t.Helper()
	err := processtest.Poll(func() error {
		for _, text := range texts {
			if !strings.Contains(follower.Stdout.String(), text) {
				return fmt.Errorf("%s is not printed: %s%s", text, follower.Stdout, follower.Stderr)
			}
		}
		return nil
	})
	processtest.Must(t, err)
}
