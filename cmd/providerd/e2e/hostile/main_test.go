// Package hostile_test exposes a server and the commands to hostile clients, files, pipes and servers, and measures the
// memory that they take. Package server tests how handlers respond to hostile bodies.
//
// Start with bodies_test.go.
package hostile_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain also runs the test binary as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
