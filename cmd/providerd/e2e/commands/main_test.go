// Package commands_test runs the operator's commands as processes: the scripts in testdata, and Go tests where
// scripts are not enough, such as many callers, other users, damaged databases and commands under load. Package
// serving tests the server, and package docs the commands in READMEs.
//
// Start with a script, such as testdata/both/token.txtar; scripts_test.go defines the commands of the scripts.
package commands_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain allows the test binary to run as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
