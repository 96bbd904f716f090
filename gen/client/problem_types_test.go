package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/gen/client"
)

// The constants match the server's index of problems.
func TestProblemTypesMatchServer(t *testing.T) {
	t.Parallel()
	declared := constants(t, "problem_types.go", "")
	delete(declared, client.TypeForeign)
	baseURL, _, stop := startServer()
	defer stop()
	response, err := http.Get(baseURL + "/problems/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Count(string(page), `href="/problems/`)
	for problem := range declared {
		if !strings.Contains(string(page), `href="`+problem+`"`) {
			t.Errorf("the server has no problem %s", problem)
		}
	}
	if linked != len(declared) {
		t.Errorf("the server has %d problems, the SDK %d", linked, len(declared))
	}
}

// errors.Is matches each sentinel with refusals of its type only.
func TestRefusalErrorsIs(t *testing.T) {
	t.Parallel()
	kinds := map[string]error{
		client.TypeValidationFailed:     client.ErrValidationFailed,
		client.TypeUnauthorized:         client.ErrUnauthorized,
		client.TypeForbidden:            client.ErrForbidden,
		client.TypeNotFound:             client.ErrNotFound,
		client.TypeClientIDTaken:        client.ErrClientIDTaken,
		client.TypeIdempotencyKeyReused: client.ErrIdempotencyKeyReused,
		client.TypeTooManyRequests:      client.ErrTooManyRequests,
		client.TypeOverloaded:           client.ErrOverloaded,
		client.TypeOutcomeUnknown:       client.ErrOutcomeUnknown,
		client.TypeStorageUnavailable:   client.ErrStorageUnavailable,
	}
	for refused := range kinds {
		err := fmt.Errorf("create: %w", &client.Error{Problem: client.Problem{Type: refused}})
		for kind, sentinel := range kinds {
			if errors.Is(err, sentinel) != (kind == refused) {
				t.Errorf("of a refusal %s, errors.Is finds %v", refused, sentinel)
			}
		}
	}
}
