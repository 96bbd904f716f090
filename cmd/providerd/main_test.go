package main

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/server/contracttest"
)

// TestMain lets the test binary be started as providerd, so that tests run the program as a process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"providerd": main})
}

// TestCommandLine runs the scripts in testdata. They have three commands of their own: "serve" starts a server in the
// folder data, "post STATUS PATH BODY" sends it a create, and "refused-within-a-second PATH" sends it creates until the
// token is refused.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	client := contracttest.Client(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Cmds: map[string]func(script *testscript.TestScript, negated bool, arguments []string){
			"serve": func(script *testscript.TestScript, _ bool, arguments []string) {
				server, err := startProcess(t.Context(), script.Getenv("WORK"), arguments...)
				script.Check(err)
				script.Setenv("URL", server.url)
				script.Defer(func() { script.Check(server.stop()) })
			},
			"refused-within-a-second": func(script *testscript.TestScript, _ bool, arguments []string) {
				server := &process{url: script.Getenv("URL")}
				for begun := time.Now(); ; {
					status, _, err := server.post(client, script.Getenv("WORK"), arguments[0], "{}")
					script.Check(err)
					if status == http.StatusUnauthorized {
						return
					}
					if time.Since(begun) > time.Second {
						script.Fatalf("a second later status is %d", status)
					}
				}
			},
			"post": func(script *testscript.TestScript, _ bool, arguments []string) {
				server := &process{url: script.Getenv("URL")}
				status, text, err := server.post(client, script.Getenv("WORK"), arguments[1], arguments[2])
				script.Check(err)
				if want := arguments[0]; want != strconv.Itoa(status) {
					script.Fatalf("status is %d, want %s: %s", status, want, text)
				}
			},
		},
	})
}
