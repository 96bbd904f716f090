// Package shipped_test runs what operators get: the binaries, the image and all else that make dist builds, the unit
// under systemd, and the alerts, the dashboard and the settings of Prometheus. Most of it needs programs that not every
// machine has; the tests say which.
//
// Start with dist_test.go for what is built, and with operate_test.go for what is copied from deploy.
package shipped_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
