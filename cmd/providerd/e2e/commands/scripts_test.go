package commands_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

type scriptCommand = func(script *testscript.TestScript, negated bool, arguments []string)

// TestCommandLine runs the scripts in testdata.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata", RequireExplicitExec: true, Cmds: scriptCommands(t)})
}

// TestCommandLineOverPostgreSQL runs the scripts in testdata/postgres. CLUSTER_DATABASE is the URL of an empty
// database.
func TestCommandLineOverPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/postgres", RequireExplicitExec: true, Cmds: scriptCommands(t),
		Setup: func(script *testscript.Env) error {
			script.Setenv("CLUSTER_DATABASE", cluster.CreateDatabase(t))
			return nil
		},
	})
}

// scriptCommands returns the commands of the scripts: "serve" starts a server in the directory of the script,
// "stderr-of-server PATTERN" waits for a message of it, "end-server" stops it, "damage DATABASE STATEMENT" changes a
// database, "certificate DIR" writes a certificate and its key, "fails STATUS PATTERN ARGUMENT..." runs a command of providerd that ends with a status and a message,
// "post STATUS PATH BODY" sends a create, and "refused-within-a-second PATH" sends creates until the token is refused.
func scriptCommands(t *testing.T) map[string]scriptCommand {
	t.Helper()
	client := contracttest.Client(t)
	// servers has the server that the scripts started last in each directory.
	var servers sync.Map
	started := func(script *testscript.TestScript) *providerdtest.Server {
		server, ok := servers.Load(script.Getenv("WORK"))
		if !ok {
			script.Fatalf("no server was started")
		}
		return server.(*providerdtest.Server)
	}
	return map[string]scriptCommand{
		"serve": func(script *testscript.TestScript, _ bool, arguments []string) {
			server := serveScript(t, script, arguments)
			servers.Store(script.Getenv("WORK"), server)
			script.Setenv("URL", server.URL)
			script.Defer(func() {
				if !server.HasEnded() {
					server.Stop(t)
				}
			})
		},
		"fails": func(script *testscript.TestScript, _ bool, arguments []string) {
			want, pattern := arguments[0], regexp.MustCompile("(?m)^(?:"+arguments[1]+")$")
			status := 0
			if exit, ok := errors.AsType[*exec.ExitError](script.Exec("providerd", arguments[2:]...)); ok {
				status = exit.ExitCode()
			}
			if said := script.ReadFile("stderr"); strconv.Itoa(status) != want || !pattern.MatchString(said) {
				script.Fatalf("status is %d, want %s, and %q in %s", status, want, arguments[1], said)
			}
		},
		"certificate": func(script *testscript.TestScript, _ bool, arguments []string) {
			providerdtest.WriteCertificate(t, script.MkAbs(arguments[0]), 1)
		},
		"end-server": func(script *testscript.TestScript, _ bool, _ []string) {
			started(script).Stop(t)
		},
		"damage": func(script *testscript.TestScript, _ bool, arguments []string) {
			script.Check(providerdtest.Execute(t.Context(), script.MkAbs(arguments[0]), arguments[1]))
		},
		"stderr-of-server": func(script *testscript.TestScript, _ bool, arguments []string) {
			server, pattern := started(script), regexp.MustCompile(arguments[0])
			processtest.WaitUntil(t, "the server says "+arguments[0], func() bool { return pattern.MatchString(server.Stderr.String()) })
		},
		"refused-within-a-second": func(script *testscript.TestScript, _ bool, arguments []string) {
			server := &providerdtest.Server{URL: script.Getenv("URL"), Dir: script.Getenv("WORK")}
			for start := time.Now(); ; {
				sent := time.Now()
				status, _, err := server.Post(client, arguments[0], "{}")
				script.Check(err)
				if status == http.StatusUnauthorized {
					return
				}
				if sent.Sub(start) > time.Second {
					script.Fatalf("%s later status is %d", sent.Sub(start), status)
				}
			}
		},
		"post": func(script *testscript.TestScript, _ bool, arguments []string) {
			server := &providerdtest.Server{URL: script.Getenv("URL"), Dir: script.Getenv("WORK")}
			status, text, err := server.Post(client, arguments[1], arguments[2])
			script.Check(err)
			if want := arguments[0]; want != strconv.Itoa(status) {
				script.Fatalf("status is %d, want %s: %s", status, want, text)
			}
		},
	}
}

// serveScript starts a server. If a script must have an initial token, as the first start creates one for SQLite, it
// creates that and the keyset over PostgreSQL.
func serveScript(t *testing.T, script *testscript.TestScript, arguments []string) *providerdtest.Server {
	t.Helper()
	dir, environment := script.Getenv("WORK"), []string{}
	for _, name := range []string{"PROVIDERD_DATABASE", "PROVIDERD_KEYSET"} {
		if value := script.Getenv(name); value != "" {
			environment = append(environment, name+"="+value)
		}
	}
	run := func(arguments ...string) string {
		output, err := providerdtest.Command(t.Context(), dir, append(environment, arguments...)...).Output()
		script.Check(err)
		return string(output)
	}
	token := script.Getenv("INITIAL_TOKEN")
	isMissing := func(path string) bool {
		_, err := os.Stat(path)
		return token != "" && errors.Is(err, fs.ErrNotExist)
	}
	if isMissing(script.Getenv("PROVIDERD_KEYSET")) {
		run("key", "create")
	}
	started, err := providerdtest.Start(providerdtest.ServeCommand(t.Context(), dir, append(environment, arguments...)...))
	script.Check(err)
	if isMissing(token) {
		script.Check(os.WriteFile(token, []byte(run("token", "create", "--name", "initial", "--allow", "all")), 0o600))
	}
	return started
}

// TestCommandLineOverBothDatabases runs the scripts in testdata/both over SQLite and PostgreSQL. Every
// command uses the database of the script.
func TestCommandLineOverBothDatabases(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	for name, database := range map[string]func(dir string) string{
		"sqlite":   func(dir string) string { return "sqlite:" + filepath.Join(dir, "data", "providerd.db") },
		"postgres": func(string) string { return cluster.CreateDatabase(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testscript.Run(t, testscript.Params{
				Dir: "testdata/both", RequireExplicitExec: true, Cmds: scriptCommands(t),
				Setup: func(script *testscript.Env) error {
					url := database(script.WorkDir)
					script.Setenv("PROVIDERD_DATABASE", url)
					script.Setenv("PROVIDERD_KEYSET", filepath.Join(script.WorkDir, "keyset.json"))
					script.Setenv("INITIAL_TOKEN", filepath.Join(script.WorkDir, "data", "initial-token"))
					return os.Mkdir(filepath.Join(script.WorkDir, "data"), 0o700)
				},
			})
		})
	}
}
