// Package upgrade_test exchanges replicas of the last release for those of this one under load, and back, and databases
// as well. Migrations alone are tested in store/sqlite and store/postgres.
//
// Start with upgrade_test.go.
package upgrade_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
