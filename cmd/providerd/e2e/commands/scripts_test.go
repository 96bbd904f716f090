// Package commands_test runs the operator's commands as processes: the scripts in testdata, and Go tests where
// scripts are not enough, such as many callers, other users, damaged databases and commands under load. Package
// serving tests the server, and package docs the commands in READMEs.
//
// Start with a script, such as testdata/both/token.txtar; scripts_test.go defines the commands of the scripts.
package commands_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// TestMain allows the test binary to run as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }

// TestCommandLine runs the scripts in testdata.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata", func(*testscript.Env) error { return nil })
}

// TestCommandLineOverPostgreSQL runs the scripts in testdata/postgres. CLUSTER_DATABASE is the URL of an empty
// database.
func TestCommandLineOverPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	runScripts(t, "testdata/postgres", func(script *testscript.Env) error {
		script.Setenv("CLUSTER_DATABASE", cluster.CreateDatabase(t))
		return nil
	})
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
			runScripts(t, "testdata/both", func(script *testscript.Env) error {
				script.Setenv("PROVIDERD_DATABASE", database(script.WorkDir))
				script.Setenv("PROVIDERD_KEYSET", filepath.Join(script.WorkDir, "keyset.json"))
				script.Setenv("INITIAL_TOKEN", filepath.Join(script.WorkDir, "data", "initial-token"))
				return os.Mkdir(filepath.Join(script.WorkDir, "data"), 0o700)
			})
		})
	}
}

// runScripts runs the scripts in a directory, with these commands: "prints PATTERN ARGUMENT..." and "says PATTERN
// ARGUMENT..." run a command of providerd, whose output or messages match, and "fails STATUS PATTERN ARGUMENT..." one
// that ends with a status and with a message that matches as a whole. The command can also be of sh, bash, env or stat.
// "serve" starts a server in the directory of the script, "stderr-of-server PATTERN" waits for a message of it,
// "end-server" stops it, "damage DATABASE STATEMENT" changes a database, "certificate DIR" writes a certificate and its
// key, "post STATUS PATH BODY" sends a create, and "refused-within-a-second PATH" sends creates until the token is refused.
func runScripts(t *testing.T, dir string, setUp func(script *testscript.Env) error) {
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
	post := func(script *testscript.TestScript, path, body string) (int, string) {
		server := &providerdtest.Server{URL: script.Getenv("URL"), Dir: script.Getenv("WORK")}
		status, text, err := server.Post(client, path, body)
		script.Check(err)
		return status, text
	}
	isUpdate := os.Getenv("UPDATE") != ""
	testscript.Run(t, testscript.Params{Dir: dir, RequireExplicitExec: true, UpdateScripts: isUpdate, Setup: setUp, Cmds: map[string]scriptCommand{
		"prints": func(script *testscript.TestScript, _ bool, arguments []string) {
			expect(script, "0", "stdout", arguments[0], arguments[1:])
		},
		"says": func(script *testscript.TestScript, _ bool, arguments []string) {
			expect(script, "0", "stderr", arguments[0], arguments[1:])
		},
		"fails": func(script *testscript.TestScript, _ bool, arguments []string) {
			expect(script, arguments[0], "stderr", "^(?:"+arguments[1]+")$", arguments[2:])
		},
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
			for start := time.Now(); ; {
				sent := time.Now()
				if status, _ := post(script, arguments[0], "{}"); status == http.StatusUnauthorized {
					return
				} else if sent.Sub(start) > time.Second {
					script.Fatalf("%s later status is %d", sent.Sub(start), status)
				}
			}
		},
		"post": func(script *testscript.TestScript, _ bool, arguments []string) {
			if status, text := post(script, arguments[1], arguments[2]); arguments[0] != strconv.Itoa(status) {
				script.Fatalf("status is %d, want %s: %s", status, arguments[0], text)
			}
		},
	}})
}

type scriptCommand = func(script *testscript.TestScript, negated bool, arguments []string)

// expect runs a command, and checks its status and what it writes to a stream.
func expect(script *testscript.TestScript, want, stream, pattern string, words []string) {
	if !slices.Contains([]string{"sh", "bash", "env", "stat"}, words[0]) {
		words = append([]string{"providerd"}, words...)
	}
	status := 0
	if exit, ok := errors.AsType[*exec.ExitError](script.Exec(words[0], words[1:]...)); ok {
		status = exit.ExitCode()
	}
	text := script.ReadFile(stream)
	if strconv.Itoa(status) != want || !regexp.MustCompile("(?m)"+pattern).MatchString(text) {
		script.Fatalf("status is %d, want %s, and %q in %s", status, want, pattern, text)
	}
}

// serveScript starts a server. If a script must have an initial token, as the first start creates one for SQLite, it
// creates that and the keyset over PostgreSQL.
func serveScript(t *testing.T, script *testscript.TestScript, arguments []string) *providerdtest.Server {
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
