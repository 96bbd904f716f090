// Package soak_test loads a server steadily while it meets what servers meet, and judges whether anything grows. How
// fast a server is, cmd/bench measures.
//
// Start with soak_test.go.
package soak_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
