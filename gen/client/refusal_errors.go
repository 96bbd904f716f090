package client

// refusalError is a problem type. errors.Is matches it with an *Error of that type.
type refusalError string

// Error returns the problem type.
func (k refusalError) Error() string { return "refused: " + string(k) }

// Common refusals, for errors.Is: errors.Is(err, ErrClientIDTaken) reports whether err is an *Error of type
// TypeClientIDTaken. ErrNotFound means that the path of the base URL is wrong.
const (
	ErrValidationFailed     = refusalError(TypeValidationFailed)
	ErrUnauthorized         = refusalError(TypeUnauthorized)
	ErrForbidden            = refusalError(TypeForbidden)
	ErrNotFound             = refusalError(TypeNotFound)
	ErrClientIDTaken        = refusalError(TypeClientIDTaken)
	ErrIdempotencyKeyReused = refusalError(TypeIdempotencyKeyReused)
	ErrTooManyRequests      = refusalError(TypeTooManyRequests)
	ErrOverloaded           = refusalError(TypeOverloaded)
	ErrOutcomeUnknown       = refusalError(TypeOutcomeUnknown)
	ErrStorageUnavailable   = refusalError(TypeStorageUnavailable)
)

// Is reports whether target is the error above for the type of e (errors.Is).
func (e *Error) Is(target error) bool {
	kind, ok := target.(refusalError)
	return ok && string(kind) == e.Type
}
