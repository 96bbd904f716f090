// Package serving_test runs servers as processes: how they start, end and are killed, what they log, count and trace,
// TLS, full and failing disks, and replicas over PostgreSQL. Callers who mean harm are in hostile, long runs in soak,
// and lost databases in failover.
//
// Start with serve_test.go.
package serving_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
