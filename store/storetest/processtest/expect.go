package processtest

import "fmt"

// Expect fails the test, which continues, unless a condition holds.
func Expect(t failing, holds bool, message string, arguments ...any) {
	t.Helper()
	if !holds {
		t.Errorf(message, arguments...)
	}
}

// Require is Expect, but the test ends.
func Require(t failing, holds bool, message string, arguments ...any) {
	t.Helper()
	if !holds {
		t.Fatal(fmt.Sprintf(message, arguments...))
	}
}
