// Package failover_test takes servers, replicas and networks of PostgreSQL away under load, and accounts for each create:
// none that was acknowledged may be missing, and none may be there twice. Replicas that are left alone are in serving,
// and the failover of the store without a server in store/postgres.
//
// Start with failover_test.go.
package failover_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
