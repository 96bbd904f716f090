// Package leaks_test searches everything that the program prints, sends, logs, traces and stores for secrets, and
// proves with injected leaks that it finds them.
//
// Start with leaks_test.go.
package leaks_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain also runs the test binary as providerd, with leaks if a variable names them.
func TestMain(m *testing.M) { providerdtest.MainAround(m, runLeaking) }
