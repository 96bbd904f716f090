// Package docs_test does what the documents say: it pastes the commands of the READMEs, runs their programs, and uses
// the reference page in a browser. Whether a README names each flag and command is tested beside the program.
//
// Start with readme_test.go.
package docs_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
