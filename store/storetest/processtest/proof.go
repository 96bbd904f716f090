package processtest

import (
	"os"
	"strconv"
	"testing"
)

// ProofSize returns the size of a long proof if "make proof" runs that one, or fallback.
func ProofSize(t testing.TB, proof string, fallback int) int {
	t.Helper()
	if os.Getenv("TEST_PROOF") != proof {
		return fallback
	}
	size, err := strconv.Atoi(os.Getenv("TEST_PROOF_SIZE"))
	if err != nil {
		t.Fatalf("TEST_PROOF_SIZE: %v", err)
	}
	return size
}
