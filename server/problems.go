package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
)

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

// problemKind is a type of problem, with the example that its page shows.
type problemKind struct {
	model.Problem
	contract.Example
}

// Slug returns the slug of the type.
func (k problemKind) Slug() slug { return slug(strings.TrimPrefix(k.Type, problemPath)) }

// Response returns the example of the response.
func (k problemKind) Response() (string, error) {
	text, err := json.MarshalIndent(k.Problem, "", "  ")
	return string(text), err
}

// problemKinds returns the problem types, in the order of their statuses.
func problemKinds(openapi *contract.Document) ([]problemKind, error) {
	examples, err := openapi.Examples(problemMediaType)
	if err != nil {
		return nil, fmt.Errorf("read problem types: %w", err)
	}
	kinds := pathKinds(openapi)
	for _, example := range examples {
		kind := problemKind{Example: example}
		if err := json.Unmarshal(example.Value, &kind.Problem); err != nil {
			return nil, fmt.Errorf("read problem type %q: %w", example.Summary, err)
		}
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b problemKind) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), strings.Compare(a.Type, b.Type))
	})
	return kinds, nil
}

// pathKinds returns the problem types that the contract does not have, because no operation returns them.
func pathKinds(openapi *contract.Document) []problemKind {
	const path = "/api/v3/providers/oauth2"
	kind := func(name slug, title string, status int32, summary, description, bad string) problemKind {
		return problemKind{model.Problem{
			Type: problemPath + string(name), Title: title, Status: status, Detail: explainPath(openapi, name, path),
			RequestID: "3NQ5ZB7WLGVQ6RQH2M4XK7JYTA",
		}, contract.Example{Summary: summary, Description: description, Bad: bad, Good: "POST " + path + "/"}}
	}
	return []problemKind{
		kind(notFound, "Not found", http.StatusNotFound, "There is nothing at this path",
			"Find the path in [openapi.yaml](/openapi.yaml). The paths of the operations end in a slash.", "POST "+path),
		kind(methodNotAllowed, "Method not allowed", http.StatusMethodNotAllowed, "The path does not support this method",
			"Use a method that the Allow header lists. The operations use POST.", "PUT "+path+"/"),
	}
}

func explainPath(openapi *contract.Document, kind slug, path string) string {
	meant := openapi.SuggestPath(path)
	switch {
	case kind == methodNotAllowed && meant == "":
		return "This path does not support this method. The Allow header lists the methods that it supports."
	case meant == "":
		return "There is nothing at this path. " + nearestPath(openapi, path)
	case kind == methodNotAllowed:
		meant = "Use POST"
	default:
		meant = "There is nothing at this path. To create a provider, POST to " + meant + ", with the slash at its end"
	}
	return meant + `; over HTTP, records are only created. Operators run "providerd provider list", update or delete.`
}

// nearestPath says where to find what other programs have at a path. They have further kinds beside the operations.
func nearestPath(openapi *contract.Document, path string) string {
	for _, known := range [][2]string{
		{"health live ready ping status", "/readyz reports whether providers can be stored, /healthz that the process runs."},
		{"metrics prometheus", "Metrics are at /metrics of the ops listener, which --ops-listen turns on."},
		{"swagger redoc schema openapi api-docs docs spec", "The reference is at /docs/, the contract at /openapi.json."},
		{
			"/application/o/ /if/ /outpost /oauth/ /oauth2/ /saml openid-configuration authorize userinfo jwks login",
			"Users log in at the identity platform; this server only creates its providers.",
		},
		{"admin index.html console dashboard", "There is no user interface; / has the pages for people."},
	} {
		isPart := func(part string) bool { return strings.Contains(strings.ToLower(path), part) }
		if !strings.HasPrefix(path, openapi.BaseURL+"/providers/") && slices.ContainsFunc(strings.Fields(known[0]), isPart) {
			return known[1]
		}
	}
	var operations []string
	for _, op := range openapi.Operations() {
		operations = append(operations, op.Method+" "+op.Path)
	}
	return "The operations are " + strings.Join(operations, " and ") + "; /docs/ is their reference."
}
