// Package docs_test follows the documents: it runs the commands and programs of the README and of the manual, follows
// links, and uses the reference page in a browser. Generated tables are tested beside what generates them.
//
// Start with manual_test.go.
package docs_test

import (
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestMain lets the test binary be started as providerd.
func TestMain(m *testing.M) { providerdtest.Main(m) }
