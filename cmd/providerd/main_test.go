package main

import (
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/server/contracttest"
)

// TestMain lets the test binary be started as providerd, so that tests run the program as a process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"providerd": main})
}

// TestCommandLine runs the scripts in testdata. They have two commands of their own: "serve" starts a server in the
// folder data, and "post STATUS PATH BODY" sends it a create.
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
