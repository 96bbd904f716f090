// Package leaks_test looks for secrets in all that the program writes, answers, logs, traces and keeps, and proves with
// leaks in the code that it finds them.
//
// Start with leaks_test.go.
package leaks_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
