// Package contracttest checks every response of a server against the contract. It uses a validator that the server does
// not use, so that both cannot share a mistake. It is only for tests. Start with Client.
package contracttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"example.com/providerd/gen/contract"
)

// checker checks responses against the contract.
type checker struct {
	document *openapi3.T
	router   routers.Router
}

//nolint:gochecknoglobals // With a checker of its own, each test would spend much of its time on parsing the contract.
var shared = sync.OnceValues(func() (*checker, error) {
	document, err := openapi3.NewLoader().LoadFromData(contract.YAML())
	if err != nil {
		return nil, err
	}
	for _, schema := range document.Components.Schemas {
		if credentials := schema.Value.Properties["credentials"]; credentials != nil {
			// kin-openapi refuses numbers in it that float64 cannot hold.
			credentials.Value.AdditionalProperties = openapi3.AdditionalProperties{}
		}
	}
	router, err := gorillamux.NewRouter(document)
	return &checker{document: document, router: router}, err
})

// Client returns an HTTP client that fails the test if a response violates the contract.
func Client(t testing.TB) *http.Client {
	t.Helper()
	// With its own transport, no connection outlives the server of the test.
	return ClientOver(t, &http.Transport{})
}

// ClientOver returns a Client that uses a transport.
func ClientOver(t testing.TB, base *http.Transport) *http.Client {
	t.Helper()
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: transport{base, t}}
}

type transport struct {
	base http.RoundTripper
	t    testing.TB
}

// RoundTrip sends the request and checks the response.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if file := os.Getenv("PROVIDERD_EXCHANGES"); file != "" {
		if err := record(file, request, response, body); err != nil {
			t.t.Errorf("record an exchange: %v", err)
		}
	}
	if err := Check(request, response, body); err != nil {
		t.t.Errorf("%s %s: %v", request.Method, request.URL.Path, err)
	}
	return response, nil
}

// record appends an exchange of an operation to a file, as .ci/judge reads it.
func record(path string, request *http.Request, response *http.Response, body []byte) error {
	if request.GetBody == nil || !strings.HasPrefix(request.URL.Path, "/api/") {
		return nil
	}
	sent, err := request.GetBody()
	if err != nil {
		return err
	}
	text, readErr := io.ReadAll(sent)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err := errors.Join(readErr, err); err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(file).Encode(map[string]any{
		"Method": request.Method, "URL": request.URL.RequestURI(), "RequestHeader": request.Header, "RequestBody": string(text),
		"Status": response.StatusCode, "Header": response.Header, "Body": string(body),
	}), file.Close())
}

// Check returns an error if a response violates the contract that is built into the program. Outside the operations, it
// must be a success or a problem, except that a browser gets a page about a wrong path.
func Check(request *http.Request, response *http.Response, body []byte) error {
	c, err := shared()
	if err != nil {
		return fmt.Errorf("read contract: %w", err)
	}
	if ids := response.Header.Values("X-Request-Id"); len(ids) != 1 {
		return fmt.Errorf("%d X-Request-Id headers, want 1", len(ids))
	}
	if request.Method == http.MethodHead || response.StatusCode == http.StatusNoContent {
		return nil
	}
	if response.Header.Get("Content-Type") == "application/problem+json" {
		if err := c.checkProblem(response, body); err != nil {
			return err
		}
	} else if isPage := strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") &&
		strings.Contains(request.Header.Get("Accept"), "text/html"); response.StatusCode >= http.StatusBadRequest && !isPage {
		return fmt.Errorf("status %d has the media type %q", response.StatusCode, response.Header.Get("Content-Type"))
	}
	route, parameters, err := c.router.FindRoute(request)
	if err != nil {
		return nil //nolint:nilerr // Not an operation: the contract says no more about it.
	}
	err = openapi3filter.ValidateResponse(request.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: request, Route: route, PathParams: parameters,
		},
		Status: response.StatusCode,
		Header: response.Header,
		Body:   io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true, MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		},
	})
	if err != nil {
		return fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return nil
	}
	schema := route.Operation.Responses.Status(response.StatusCode).Value.Content["application/json"].Schema.Value
	var record map[string]any
	if err := Decode(body, &record); err != nil {
		return fmt.Errorf("the response is not a JSON object: %w", err)
	}
	return checkFields(schema, record)
}

// checkProblem checks a problem against its schema, which applies outside the operations too.
func (c *checker) checkProblem(response *http.Response, body []byte) error {
	var problem map[string]any
	if err := Decode(body, &problem); err != nil {
		return fmt.Errorf("the problem is not a JSON object: %w", err)
	}
	schema := c.document.Components.Schemas["Problem"].Value
	if err := schema.VisitJSON(problem, openapi3.VisitAsResponse(), openapi3.MultiErrors()); err != nil {
		return fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	if fmt.Sprint(problem["status"]) != strconv.Itoa(response.StatusCode) {
		return fmt.Errorf("status %d has the status member %v", response.StatusCode, problem["status"])
	}
	if id := response.Header.Get("X-Request-Id"); problem["request_id"] != id {
		return fmt.Errorf("the request id is %q in the header and %q in the problem", id, problem["request_id"])
	}
	codes := c.document.Components.Schemas["ViolationCode"].Value.Description
	violations, _ := problem["errors"].([]any)
	for _, violation := range violations {
		if code := fmt.Sprint(violation.(map[string]any)["code"]); !strings.Contains(codes, "\n| `"+code+"` |") {
			return fmt.Errorf("the contract does not list the code %q", code)
		}
	}
	return checkFields(schema, problem)
}

// checkFields returns an error for unknown fields. The schemas of responses allow them, so that callers accept the
// fields of later versions.
func checkFields(schema *openapi3.Schema, object map[string]any) error {
	for name := range object {
		if schema.Properties[name] == nil {
			return fmt.Errorf("the response has the field %s, which the contract does not define", name)
		}
	}
	return nil
}

// Decode decodes JSON and keeps the digits of numbers.
func Decode(text []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(value)
}

// Patterns returns all different patterns of the contract.
func Patterns(t testing.TB) (patterns []string) {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(contract.YAML())
	text, encodeErr := json.Marshal(document)
	err = errors.Join(err, encodeErr)
	for _, match := range regexp.MustCompile(`"pattern":("(?:[^"\\]|\\.)*")`).FindAllSubmatch(text, -1) {
		var pattern string
		err = errors.Join(err, json.Unmarshal(match[1], &pattern))
		patterns = append(patterns, pattern)
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}
