// Package hostile_test lets a server and the commands meet callers, files, pipes and other servers that mean harm, most
// of it in the memory of a small container. What a handler makes of a hostile body is tested in server.
//
// Start with bodies_test.go.
package hostile_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
