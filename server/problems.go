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

// problemKind is a row of the table of problems.
type problemKind struct {
	Slug   slug
	Status int32
	Title  string
	// Detail is sent unless a refusal has its own.
	Detail string
	// Meaning, Remedy, Bad and Good are for the page at the URI of the kind. Bad and Good are the relevant part of a
	// request that gets the problem and of one that does not: the request line, a header, or the body.
	Meaning, Remedy, Bad, Good string
}

// problemKinds returns the table of problems, in the order of their statuses.
//
//nolint:funlen // A table is as long as its rows are many.
func problemKinds() []problemKind {
	return []problemKind{
		{
			malformedJSON, http.StatusBadRequest, "Malformed JSON",
			"The body is not a single JSON object. Send exactly one.",
			"The body is not exactly one well-formed JSON object in UTF-8.",
			"Send one JSON object without a byte order mark, repeated member names or trailing text, nested at most 64 levels " +
				"deep.",
			`{"name": "Intranet", "name": "Wiki", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`,
			`{"name": "Intranet", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}`,
		},
		{
			validationFailed, http.StatusBadRequest, "Validation failed",
			"The body does not meet the contract. Fix every entry in errors and send it again.",
			"The body does not meet the contract. errors lists every violation, up to the first 1000.",
			"Fix every entry: its pointer names the field, its code the rule, and its detail what the value must be.",
			`{"name": "Intranet", "authorization_flow": "default", "sub_mode": "email"}`,
			`{"name": "Intranet", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", "sub_mode": "user_email"}`,
		},
		{
			invalidParameter, http.StatusBadRequest, "Invalid parameter",
			"The query cannot be read. Write it as ?validate_only=true.",
			"The query has an unknown parameter, a parameter that appears twice, or a value that is not allowed. Nothing was " +
				"stored.",
			"Send ?validate_only=true or no query at all. A token belongs in the Authorization header.",
			"POST /api/v3/providers/oauth2/?validate_only=yes",
			"POST /api/v3/providers/oauth2/?validate_only=true",
		},
		{
			invalidHeader, http.StatusBadRequest, "Invalid header",
			"Idempotency-Key must appear at most once and have 1 to 255 visible ASCII characters.",
			"The Idempotency-Key header is empty, too long, sent twice, or has characters other than visible ASCII.",
			"Send one Idempotency-Key of 1 to 255 visible ASCII characters, such as a UUID, or none.",
			"Idempotency-Key: my first provider",
			"Idempotency-Key: my-first-provider",
		},
		{
			unauthorized, http.StatusUnauthorized, "Unauthorized",
			`Send the header "Authorization: Bearer TOKEN" with a valid access token.`,
			"The request has no access token, or one that is unknown, expired or revoked.",
			`Send the header "Authorization: Bearer TOKEN". An operator creates tokens with "providerd token create".`,
			"Authorization: Basic TOKEN",
			"Authorization: Bearer TOKEN",
		},
		{
			forbidden, http.StatusForbidden, "Forbidden",
			"The token does not allow this operation. Ask the operator for one that does.",
			"The access token is valid but does not allow this operation.",
			`Ask the operator for a token created with "providerd token create --allow OPERATION".`,
			"providerd token create --name ci --allow providers_workspace_directory_create",
			"providerd token create --name ci --allow providers_oauth2_create",
		},
		{
			notFound, http.StatusNotFound, "Not found",
			"There is nothing at this path. The operations are listed in /openapi.yaml.",
			"There is nothing at this path.",
			"Find the path in /openapi.yaml. The paths of the operations end in a slash.",
			"POST /api/v3/providers/oauth2",
			"POST /api/v3/providers/oauth2/",
		},
		{
			methodNotAllowed, http.StatusMethodNotAllowed, "Method not allowed",
			"This path does not support this method. The Allow header lists the methods that it supports.",
			"The path exists but does not support this method.",
			"Use a method that the Allow header lists. The operations use POST.",
			"PUT /api/v3/providers/oauth2/",
			"POST /api/v3/providers/oauth2/",
		},
		{
			notAcceptable, http.StatusNotAcceptable, "Not acceptable",
			`Only application/json is available. Send "Accept: application/json".`,
			"The Accept header excludes JSON, the only media type available.",
			`Send "Accept: application/json", or no Accept header.`,
			"Accept: application/xml",
			"Accept: application/json",
		},
		{
			clientIDTaken, http.StatusConflict, "Client id taken",
			"Another provider has this client_id. Choose another, or omit the field to get a random one.",
			"Another provider has this client_id, which must be unique. Nothing was stored.",
			"Choose another client_id, or omit the field to get a random one.",
			`{"name": "Shop", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", "client_id": "web-shop"}`,
			`{"name": "Shop", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", "client_id": "web-shop-2"}`,
		},
		{
			tooLarge, http.StatusRequestEntityTooLarge, "Content too large",
			"The body is larger than 1048576 bytes. Send a smaller one.",
			"The body is larger than 1048576 bytes (1 MiB).",
			"Send a smaller body.",
			"Content-Length: 1048577",
			"Content-Length: 1048576",
		},
		{
			unsupportedMediaType, http.StatusUnsupportedMediaType, "Unsupported media type",
			`Send the body as JSON in UTF-8, with "Content-Type: application/json" and no content coding.`,
			"The body is not sent as application/json, has a charset other than UTF-8, or has a content coding.",
			`Send "Content-Type: application/json" and no Content-Encoding.`,
			"Content-Type: application/x-www-form-urlencoded",
			"Content-Type: application/json",
		},
		{
			idempotencyKeyReused, http.StatusUnprocessableEntity, "Idempotency key reused",
			"This Idempotency-Key already created a provider with other values. Send its values, or use a new key.",
			"The caller already used this Idempotency-Key, and the record that it created has other values than the request. " +
				"Nothing was stored. pk names the record, and errors the fields whose values differ.",
			"Send the values of the record to get it, or use a new key for another record.",
			"Idempotency-Key: intranet",
			"Idempotency-Key: intranet-2",
		},
		{
			tooManyRequests, http.StatusTooManyRequests, "Too many requests",
			"Too many invalid access tokens came from this address. Use a valid one, or try again later.",
			"Too many unknown, expired or revoked access tokens came from this address; valid ones are still accepted. Or the " +
				"caller exceeded its request rate, which the RateLimit-Policy header then states.",
			"Use a valid token. If it is valid, or to try another one, wait as many seconds as the Retry-After header says.",
			`until curl --fail "$URL" -d @provider.json; do :; done`,
			`curl --retry 5 "$URL" -d @provider.json`,
		},
		{
			internal, http.StatusInternalServerError, "Internal server error",
			"The server failed. Report the request id to its operator.",
			"The server failed. Its log has the cause under the request id.",
			"Report the request id to the operator of the server.",
			"The server failed this morning.",
			"The server failed, request id 3NQ5ZB7WLGVQ6RQH2M4XK7JYTA.",
		},
		{
			overloaded, http.StatusServiceUnavailable, "Overloaded",
			"The server has too many requests in flight. Nothing was stored; try again later.",
			"More creates are waiting, or larger bodies are in flight, than the server can handle at once. Nothing was stored.",
			"Try again after as many seconds as the Retry-After header says.",
			`ls *.json | xargs --max-procs=600 -I {} curl "$URL" -d @{}`,
			`ls *.json | xargs --max-procs=50 -I {} curl --retry 5 "$URL" -d @{}`,
		},
		{
			outcomeUnknown, http.StatusServiceUnavailable, "Outcome unknown",
			"The database did not report whether the record was stored. Try again with the same Idempotency-Key.",
			"The database failed while storing the record and did not report whether it succeeded.",
			"Try again with the same Idempotency-Key: the response is the record, created once. If the request had no key, " +
				"ask the operator whether the record exists before sending it again.",
			`curl --retry 5 "$URL" -d @provider.json`,
			`curl --retry 5 -H "Idempotency-Key: intranet" "$URL" -d @provider.json`,
		},
		{
			storageUnavailable, http.StatusServiceUnavailable, "Storage unavailable",
			"The database is not available. Nothing was stored; try again later.",
			"The database cannot be reached, its disk is full, or the record or token is corrupt. Nothing was stored.",
			"Try again after as many seconds as the Retry-After header says.",
			`curl "$URL" -d @provider.json`,
			`curl --retry 5 -H "Idempotency-Key: intranet" "$URL" -d @provider.json`,
		},
	}
}
