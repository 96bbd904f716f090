// Package commands_test runs the commands of an operator as processes: the scripts in testdata, and in Go what a script
// cannot say, such as many callers, other users, faults of a database, and commands under load. What a server does is
// in serving, and what a README says of commands in docs.
//
// Start with a script, such as testdata/token.txtar; scripts_test.go has the commands of the scripts.
package commands_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
