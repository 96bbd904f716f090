// Package serving_test tests servers as processes: start, shutdown and kills, logs, metrics and traces, TLS, full and
// failing disks, the many requests of apply, and replicas over PostgreSQL. Package hostile tests hostile clients, soak
// long runs, and failover lost databases.
//
// Start with serve_test.go.
package serving_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain also runs the test binary as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
