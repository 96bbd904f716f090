// Package shipped_test tests what operators get: everything that "make dist" builds, the image, the systemd unit, the
// Prometheus configuration, alerts and their runbooks, and the dashboard. Most tests need other programs and name those
// that are missing.
//
// Start with dist_test.go for what is built, and with operate_test.go for what is copied from cmd/providerd/deploy.
package shipped_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary run as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
