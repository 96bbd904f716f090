// Package soak_test loads a server steadily through restarts, rotations and faults, and checks that no resource leaks.
// Command bench measures speed.
//
// Start with soak_test.go.
package soak_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain also runs the test binary as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
