package command

import (
	"os"
	"strconv"
	"testing"
)

// countFrom is the number that a target of the Makefile asks for in a variable, or that of an ordinary run.
func countFrom(t *testing.T, variable string, ordinary int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return ordinary
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return count
}
