package processtest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// failing is a test, or a check of rapid.
type failing interface {
	Helper()
	Errorf(format string, arguments ...any)
	Fatal(arguments ...any)
}

// Must fails the test if there is an error.
func Must(t failing, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Check is Must, but the test continues.
func Check(t failing, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Errorf("%v", err)
	}
}

// CheckAs is Check with what failed.
func CheckAs(t failing, err error, what string, arguments ...any) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", fmt.Sprintf(what, arguments...), err)
	}
}

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

// Equal fails the test, which continues, unless a value is deeply equal to the wanted one.
func Equal[T any](t failing, got, want T, what string, arguments ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", fmt.Sprintf(what, arguments...), got, want)
	}
}

// Contains fails the test, which continues, unless a text has a part.
func Contains(t failing, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q is not in %s", part, text)
	}
}

// IsError fails the test, which continues, unless an error is the wanted one and its message has the texts.
func IsError(t failing, err, want error, texts ...string) {
	t.Helper()
	isMissing := func(text string) bool { return !strings.Contains(fmt.Sprint(err), text) }
	if !errors.Is(err, want) || slices.ContainsFunc(texts, isMissing) {
		t.Errorf("error is %v, want %v with %q", err, want, texts)
	}
}

// Result is what a function returned: a value, or an error.
type Result[T any] struct {
	value T
	err   error
}

// Try returns the result of a function, as in Try(os.ReadFile(path)).Must(t).
func Try[T any](value T, err error) Result[T] { return Result[T]{value, err} }

// Must returns the value, and fails the test if there is an error instead.
func (r Result[T]) Must(t failing) T {
	t.Helper()
	Must(t, r.err)
	return r.value
}
