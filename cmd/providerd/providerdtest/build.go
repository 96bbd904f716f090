package providerdtest

import (
	"path/filepath"
	"testing"
)

// Build builds the program as it is shipped. The test binary takes several times the memory and the time under the race
// detector.
func Build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "providerd")
	Run(t, "go", "build", "-ldflags", "-s -w", "-o", program, "example.com/providerd/cmd/providerd")
	return program
}
