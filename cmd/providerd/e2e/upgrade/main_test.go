// Package upgrade_test replaces replicas of this build with those of a newer program, which has a further migration,
// under load, and back. Packages store/sqlite and store/postgres test the migrations.
//
// Start with upgrade_test.go.
package upgrade_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain also runs the test binary as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
