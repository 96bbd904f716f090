// Package failover_test makes PostgreSQL servers, replicas and networks fail under load, and accounts for each
// create: no acknowledged one may be missing, and none may be stored twice. Tests of undisturbed replicas are in
// serving, and tests of failover without a server in store/postgres.
//
// Start with failover_test.go.
package failover_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary run as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
