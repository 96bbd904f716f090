package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// maxMessage and maxRequestID are the most bytes of a server's message and request ID that an error quotes.
	maxMessage   = 2048
	maxRequestID = 128
	// maxHost is the most bytes of a redirect's host that an error quotes: a DNS name and a port.
	maxHost = 262
	// maxViolations is the most violations that a response lists (Problem in openapi.yaml).
	maxViolations = 1000
)

// Error is a refusal: the problem document (RFC 9457) that the server returned. For anything else, such as the page
// of a proxy or a redirect, the type is about:blank.
type Error struct {
	Problem
	// RetryAfter is how long the server asks to wait (RFC 9110, section 10.2.3); 0 if it does not.
	RetryAfter time.Duration
}

// Error returns one line of at most about 2 KiB: the status, title and detail, as many violations as fit, the wait that
// the server asks for, and the request ID for the operator.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s: %s", e.Status, e.Title, e.Detail)
	for _, violation := range e.Violations() {
		if text.Len() > maxMessage {
			break
		}
		text.WriteString(" " + violation.Detail)
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

// Violations returns all violations of the request body; nil if something else is wrong.
func (e *Error) Violations() []Violation { return *cmp.Or(e.Errors, new([]Violation)) }

// Violation returns the first violation of the value at a JSON pointer, such as "/redirect_uris", and whether there is
// one.
func (e *Error) Violation(pointer string) (violation Violation, ok bool) {
	violations := e.Violations()
	i := slices.IndexFunc(violations, func(v Violation) bool { return v.Pointer == pointer })
	if i < 0 {
		return Violation{}, false
	}
	return violations[i], true
}

// newError returns the refusal in a problem document. If the response is something else, only its status is known.
func newError(response *http.Response, text []byte) *Error {
	var document struct {
		Problem
		// An array, because violations beyond its end are not decoded: a list of empty ones would take many times its bytes.
		Errors [maxViolations]Violation `json:"errors"`
	}
	if json.Unmarshal(text, &document) != nil || int(document.Status) != response.StatusCode {
		detail := "The response is not a problem document. Is there a proxy between this program and the server?"
		switch elsewhere := []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}; {
		case slices.Contains(elsewhere, response.StatusCode):
			detail = "This is not the API of providerd. Check the host, port and path of the base URL."
		case response.StatusCode == http.StatusBadRequest && wantsTLS.Match(text):
			detail = "The server uses TLS. Use https:// in the base URL."
		}
		return foreignResponse(response, detail)
	}
	listed := slices.DeleteFunc(document.Errors[:], func(v Violation) bool { return v == Violation{} })
	if len(listed) > 0 {
		document.Problem.Errors = new(slices.Clone(listed))
	}
	return &Error{Problem: document.Problem, RetryAfter: retryAfter(response.Header)}
}

// wantsTLS matches what the TLS ports of Go, nginx and Apache say to a client without TLS.
var wantsTLS = regexp.MustCompile(`HTTP request to an HTTPS|plain HTTP`)

// foreignResponse returns a refusal of which only the status and header are known.
func foreignResponse(response *http.Response, detail string) *Error {
	return &Error{
		Problem: Problem{
			Status: int32(response.StatusCode), //nolint:gosec // It has three digits.
			Type:   string(ErrForeign), Title: http.StatusText(response.StatusCode), Detail: detail,
			RequestID: response.Header.Get("X-Request-Id"),
		},
		RetryAfter: retryAfter(response.Header),
	}
}

// retryAfter returns the wait that the Retry-After header asks for, as a number of seconds or a date.
func retryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if date, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(date))
	}
	seconds, _ := strconv.ParseUint(text, 10, 64) // 0 if it is not a number, and the largest one if it is larger.
	return time.Duration(min(seconds, uint64(math.MaxInt64/time.Second))) * time.Second
}

// legible returns the beginning of a server's text on one line and without control characters.
func legible(text string, maxBytes int) string {
	if len(text) > maxBytes {
		text = strings.ToValidUTF8(text[:maxBytes], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// refusalError is a problem type as an error that matches every refusal of the type.
type refusalError string

func (t refusalError) Error() string { return "refused: " + string(t) }

// Problem types (RFC 9457, section 3.1.1), for errors.Is: errors.Is(err, ErrClientIDTaken) reports whether err is an
// *Error whose Type is the text after "refused: ", the path of a page of the server that explains it. ErrNotFound means
// that the path of the base URL is wrong. Newer servers may use more types.
const (
	ErrMalformedJSON        refusalError = "/problems/malformed-json"
	ErrValidationFailed     refusalError = "/problems/validation-failed"
	ErrInvalidParameter     refusalError = "/problems/invalid-parameter"
	ErrInvalidHeader        refusalError = "/problems/invalid-header"
	ErrUnauthorized         refusalError = "/problems/unauthorized"
	ErrForbidden            refusalError = "/problems/forbidden"
	ErrNotFound             refusalError = "/problems/not-found"
	ErrMethodNotAllowed     refusalError = "/problems/method-not-allowed"
	ErrNotAcceptable        refusalError = "/problems/not-acceptable"
	ErrClientIDTaken        refusalError = "/problems/client-id-taken"
	ErrTooLarge             refusalError = "/problems/too-large"
	ErrUnsupportedMediaType refusalError = "/problems/unsupported-media-type"
	ErrIdempotencyKeyReused refusalError = "/problems/idempotency-key-reused"
	ErrTooManyRequests      refusalError = "/problems/too-many-requests"
	ErrInternal             refusalError = "/problems/internal"
	ErrOverloaded           refusalError = "/problems/overloaded"
	ErrOutcomeUnknown       refusalError = "/problems/outcome-unknown"
	ErrStorageUnavailable   refusalError = "/problems/storage-unavailable"
	// ErrForeign matches refusals that are not problem documents, such as the page of a proxy (RFC 9457, section 4.2.1).
	ErrForeign refusalError = "about:blank"
)

// Is reports whether target is the problem type of e (errors.Is).
func (e *Error) Is(target error) bool {
	kind, ok := target.(refusalError)
	return ok && string(kind) == e.Type
}
