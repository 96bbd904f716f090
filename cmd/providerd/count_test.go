package main

import (
	"os"
	"strconv"
	"testing"

	"example.com/providerd/store"
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

// countNames counts the providers of a database by their names, and closes it.
func countNames(t *testing.T, database *store.Store) map[string]int {
	t.Helper()
	found := map[string]int{}
	for record, err := range database.Providers(t.Context(), store.Filter{}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		found[record.Common().Name]++
	}
	if err := database.Close(); err != nil {
		t.Error(err)
	}
	return found
}
