package client

// refusalError is a type of problem, as an error that errors.Is finds in an *Error of that type.
type refusalError string

// Error names the type.
func (k refusalError) Error() string { return "refused: " + string(k) }

// The common refusals, for errors.Is: errors.Is(err, ErrClientIDTaken) reports whether err is an *Error whose Type is
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

// Is reports whether the refusal is of the type that one of the errors above stands for (errors.Is).
func (e *Error) Is(target error) bool {
	kind, ok := target.(refusalError)
	return ok && string(kind) == e.Type
}
