package server

import "net/http"

// slug names a kind of problem; the URI of the kind is problemPath followed by it.
type slug string

const problemPath = "/problems/"

const (
	malformedJSON        slug = "malformed-json"
	validationFailed     slug = "validation-failed"
	invalidParameter     slug = "invalid-parameter"
	invalidHeader        slug = "invalid-header"
	unauthorized         slug = "unauthorized"
	forbidden            slug = "forbidden"
	notFound             slug = "not-found"
	methodNotAllowed     slug = "method-not-allowed"
	notAcceptable        slug = "not-acceptable"
	clientIDTaken        slug = "client-id-taken"
	tooLarge             slug = "too-large"
	unsupportedMediaType slug = "unsupported-media-type"
	idempotencyKeyReused slug = "idempotency-key-reused"
	tooManyRequests      slug = "too-many-requests"
	internal             slug = "internal"
	overloaded           slug = "overloaded"
	outcomeUnknown       slug = "outcome-unknown"
	storageUnavailable   slug = "storage-unavailable"
)

// problemKind is a row of the table of errors.
type problemKind struct {
	Slug   slug
	Status int32
	Title  string
	// Detail is the sentence of an answer that has nothing more exact to say.
	Detail string
	// Meaning and Remedy are for the page that the URI of the kind leads to.
	Meaning string
	Remedy  string
}

// problemKinds is the table of errors.
//
//nolint:funlen // A table is as long as its rows are many.
func problemKinds() []problemKind {
	return []problemKind{
		{
			malformedJSON, http.StatusBadRequest, "Malformed JSON",
			"The body is not one JSON object. Send exactly one.",
			"The body is not exactly one clean JSON object in UTF-8.",
			"Send one JSON object: no byte order mark, no member name twice, nothing after the object, nesting up to 64.",
		},
		{
			validationFailed, http.StatusBadRequest, "Validation failed",
			"The body breaks rules of the contract. Fix every entry of errors and send it again.",
			"The body breaks rules of the contract. Every violation has an entry in errors, which lists the first 1000.",
			"Each entry's pointer says where, its code which rule, its detail what the value must be. Fix all of them.",
		},
		{
			invalidParameter, http.StatusBadRequest, "Invalid parameter",
			"The query cannot be read. Write it as in ?validate_only=true.",
			"The query has a parameter that the operation does not know, one that is sent twice, or a value that is not " +
				"allowed. Nothing was stored.",
			"Send ?validate_only=true or no query at all. A token belongs in the header Authorization.",
		},
		{
			invalidHeader, http.StatusBadRequest, "Invalid header",
			"The header Idempotency-Key must be sent once at most, with 1 to 255 visible ASCII characters.",
			"The header Idempotency-Key is empty, too long, sent twice, or has characters other than visible ASCII.",
			"Send one Idempotency-Key of 1 to 255 visible ASCII characters, such as a UUID, or none.",
		},
		{
			unauthorized, http.StatusUnauthorized, "Unauthorized",
			`Send the header "Authorization: Bearer TOKEN" with a valid access token.`,
			"The request has no access token, or one that is wrong, expired or revoked.",
			`Send the header "Authorization: Bearer TOKEN". An operator makes tokens with "providerd token create".`,
		},
		{
			forbidden, http.StatusForbidden, "Forbidden",
			"The token does not allow this operation. Ask the operator for one that does.",
			"The access token is valid but does not allow this operation.",
			`Ask the operator for a token made with "providerd token create --allow OPERATION".`,
		},
		{
			notFound, http.StatusNotFound, "Not found",
			"There is nothing at this path. The operations are listed in /openapi.yaml.",
			"There is nothing at this path.",
			"Look the path up in /openapi.yaml. The paths of the operations end in a slash.",
		},
		{
			methodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed",
			"This path does not take this method. The header Allow lists those that it takes.",
			"The path exists but does not take this method.",
			"Use a method that the header Allow lists. The operations are POST.",
		},
		{
			notAcceptable, http.StatusNotAcceptable, "Not acceptable",
			`Only JSON can be answered. Send "Accept: application/json".`,
			"The header Accept excludes JSON, and nothing else can be answered.",
			`Send "Accept: application/json", or no Accept at all.`,
		},
		{
			clientIDTaken, http.StatusConflict, "Client id taken",
			"Another provider has this client_id. Choose another, or leave the field out to get a random one.",
			"A client_id identifies one provider, and another provider has this one. Nothing was stored.",
			"Choose another client_id, or leave the field out to get a random one.",
		},
		{
			tooLarge, http.StatusRequestEntityTooLarge, "Content too large",
			"The body is larger than 1048576 bytes. Send a smaller one.",
			"The body is larger than 1048576 bytes (1 MiB).",
			"Send a smaller body.",
		},
		{
			unsupportedMediaType, http.StatusUnsupportedMediaType, "Unsupported media type",
			`Send the body as JSON in UTF-8, with "Content-Type: application/json" and no content coding.`,
			"The body is not sent as application/json, or in a charset other than UTF-8, or with a content coding.",
			`Send "Content-Type: application/json" and no Content-Encoding.`,
		},
		{
			idempotencyKeyReused, http.StatusUnprocessableEntity, "Idempotency key reused",
			"This Idempotency-Key was used for another body before. Send the first body again, or use a new key.",
			"The caller used this Idempotency-Key for another body before. Nothing was stored. The record that it made is " +
				"named by pk, and the fields with other values in errors.",
			"Send the first body again to get its record, or use a new key for the new body.",
		},
		{
			tooManyRequests, http.StatusTooManyRequests, "Too many requests",
			"Too many wrong access tokens came from this address. Use a valid one, or try again later.",
			"Too many wrong, expired or revoked access tokens came from this address, and valid ones are still taken; or the " +
				"caller sends more requests than it may, which the header RateLimit-Policy then tells.",
			"Use a valid token. With it, or for another wrong one, wait the seconds that the header Retry-After names.",
		},
		{
			internal, http.StatusInternalServerError, "Internal server error",
			"The server failed. Give its operator the request id.",
			"The server failed. The cause is in its log, under the request id.",
			"Give the request id to the operator of the server.",
		},
		{
			overloaded, http.StatusServiceUnavailable, "Overloaded",
			"The server has too much in work. Nothing was stored; try again later.",
			"More creates wait, or larger bodies are in work, than the server can take at once. Nothing was stored.",
			"Try again after the seconds that the header Retry-After names.",
		},
		{
			outcomeUnknown, http.StatusServiceUnavailable, "Outcome unknown",
			"The database did not tell whether the record was stored. Try again with the same Idempotency-Key.",
			"The database failed while it stored the record, and did not tell whether it did.",
			"Try again with the same Idempotency-Key: the answer is the record, made once. Without a key, look it up first.",
		},
		{
			storageUnavailable, http.StatusServiceUnavailable, "Storage unavailable",
			"The storage cannot be used at the moment. Nothing was stored; try again later.",
			"The database is away, its disk is full, no pk is left, or the record or token is damaged. Nothing was stored.",
			"Try again after the seconds that the header Retry-After names.",
		},
	}
}
