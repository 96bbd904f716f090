package client

// Problem types of refusals (RFC 9457, section 3.1.1). Each is also the path of a page of the server that explains it.
const (
	TypeMalformedJSON        = "/problems/malformed-json"
	TypeValidationFailed     = "/problems/validation-failed"
	TypeInvalidParameter     = "/problems/invalid-parameter"
	TypeInvalidHeader        = "/problems/invalid-header"
	TypeUnauthorized         = "/problems/unauthorized"
	TypeForbidden            = "/problems/forbidden"
	TypeNotFound             = "/problems/not-found"
	TypeMethodNotAllowed     = "/problems/method-not-allowed"
	TypeNotAcceptable        = "/problems/not-acceptable"
	TypeClientIDTaken        = "/problems/client-id-taken"
	TypeTooLarge             = "/problems/too-large"
	TypeUnsupportedMediaType = "/problems/unsupported-media-type"
	TypeIdempotencyKeyReused = "/problems/idempotency-key-reused"
	TypeTooManyRequests      = "/problems/too-many-requests"
	TypeInternal             = "/problems/internal"
	TypeOverloaded           = "/problems/overloaded"
	TypeOutcomeUnknown       = "/problems/outcome-unknown"
	TypeStorageUnavailable   = "/problems/storage-unavailable"
	// TypeForeign is the type of a refusal that is not a problem document, such as the page of a proxy (RFC 9457, section
	// 4.2.1).
	TypeForeign = "about:blank"
)
