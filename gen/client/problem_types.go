package client

// refusalError is a problem type as an error that matches every refusal of the type.
type refusalError string

// Error returns the problem type.
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
