package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// maxMessage and maxRequestID are how many bytes of what a server says are in the text of an error.
	maxMessage   = 2048
	maxRequestID = 128
)

// Error is a refusal: the problem document (RFC 9457) that the server answered. What is no such document, such as the
// page of a proxy or a redirect, has the type about:blank.
type Error struct {
	Problem
	// RetryAfter is how long the server asks to wait (RFC 9110, section 10.2.3); 0 where it does not.
	RetryAfter time.Duration
	// sentence is the whole text of an answer that comes from the wrong place.
	sentence string
}

// Error says what is wrong in one line of about 2 KiB at most: the title, the detail, each violation as far as there is
// room, the wait that the server asks for, and the request id for the operator.
func (e *Error) Error() string {
	if e.sentence != "" {
		return e.sentence
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s: %s", e.Status, e.Title, e.Detail)
	for _, violation := range e.Violations() {
		if text.Len() > maxMessage {
			break
		}
		text.WriteString(" " + sentenceOf(violation))
	}
	line := legible(text.String(), maxMessage)
	if e.RetryAfter > 0 {
		line += fmt.Sprintf(" Retry after %s.", e.RetryAfter.Round(time.Second))
	}
	if e.RequestID != "" {
		line += fmt.Sprintf(" (request %s)", legible(e.RequestID, maxRequestID))
	}
	return line
}

// sentenceOf returns the detail of a violation. Older servers leave out its subject and its period.
func sentenceOf(violation Violation) string {
	if strings.HasSuffix(violation.Detail, ".") || strings.HasSuffix(violation.Detail, "?") {
		return violation.Detail
	}
	return fmt.Sprintf("%s %s.", violation.Pointer, violation.Detail)
}

// Violations returns all violations of the body; nil if something else is wrong.
func (e *Error) Violations() []Violation {
	if e.Errors == nil {
		return nil
	}
	return *e.Errors
}

// Violation returns the first rule that the value at a JSON pointer, such as "/redirect_uris", breaks, and whether it
// breaks one.
func (e *Error) Violation(pointer string) (violation Violation, ok bool) {
	all := e.Violations()
	at := slices.IndexFunc(all, func(one Violation) bool { return one.Pointer == pointer })
	if at < 0 {
		return Violation{}, false
	}
	return all[at], true
}

// newError reads a problem document. Where a proxy answered something else, only the status is known.
func newError(response *http.Response, text []byte) *Error {
	var document struct {
		Problem
		Errors *listedViolations `json:"errors"`
	}
	if json.Unmarshal(text, &document) != nil || int(document.Status) != response.StatusCode {
		return foreignAnswer(response,
			"The answer is not a problem document. Does something stand between this program and the server?")
	}
	document.Problem.Errors = (*[]Violation)(document.Errors)
	return &Error{Problem: document.Problem, RetryAfter: retryAfter(response.Header, time.Now())}
}

// maxViolations is how many violations an answer lists (Problem in openapi.yaml).
const maxViolations = 1000

// listedViolations leaves out what an answer lists beyond maxViolations: decoded, a list of empty violations would take
// many times its bytes.
type listedViolations []Violation

// UnmarshalJSON reads a list of violations. It returns an error for anything else.
func (l *listedViolations) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('[') {
		return errors.New("violations are not a list")
	}
	*l = listedViolations{}
	for decoder.More() && len(*l) < maxViolations {
		var violation Violation
		if err := decoder.Decode(&violation); err != nil {
			return fmt.Errorf("read a violation: %w", err)
		}
		*l = append(*l, violation)
	}
	return nil
}

// foreignAnswer is a refusal of which nothing but the header is known.
func foreignAnswer(response *http.Response, detail string) *Error {
	return &Error{
		Problem: Problem{
			Type:      TypeForeign,
			Title:     http.StatusText(response.StatusCode),
			Status:    int32(response.StatusCode), //nolint:gosec // It has three digits.
			Detail:    detail,
			RequestID: response.Header.Get("X-Request-Id"),
		},
		RetryAfter: retryAfter(response.Header, time.Now()),
	}
}

// retryAfter is the wait that the header asks for in either of its forms, a number of seconds or a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if date, err := http.ParseTime(text); err == nil {
		return max(0, date.Sub(now))
	}
	seconds, err := strconv.ParseUint(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return time.Duration(min(seconds, uint64(math.MaxInt64/time.Second))) * time.Second
}

// legible is the beginning of a text that a server chose, on one line and without what commands a terminal.
func legible(text string, maxBytes int) string {
	ellipsis := ""
	if len(text) > maxBytes {
		text, ellipsis = strings.ToValidUTF8(text[:maxBytes], ""), "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text) + ellipsis
}
