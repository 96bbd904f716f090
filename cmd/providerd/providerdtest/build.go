package providerdtest

import (
	"path/filepath"
	"testing"
)

// Build builds the program as it is shipped, with further flags of go build. Under the race detector, the test binary
// takes several times the memory and the time.
func Build(t *testing.T, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "providerd")
	arguments := append([]string{"build", "-ldflags", "-s -w", "-o", program}, flags...)
	Run(t, "go", append(arguments, "example.com/providerd/cmd/providerd")...)
	return program
}
