//go:build slow

package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/client"
	"example.com/providerd/store/storetest/processtest"
)

// TestExamplesAreUsable posts each example of a request to a mock server that is generated from the contract, and lets
// it answer each documented status with its example, which the SDK must understand.
func TestExamplesAreUsable(t *testing.T) {
	t.Parallel()
	const program, contract = "../../.ci/node_modules/.bin/prism", "../../openapi.yaml"
	_, err := os.Stat(program)
	processtest.Need(t, err, "npm ci in .ci")
	port := processtest.FreePort(t)
	mock, err := processtest.Start(exec.CommandContext(t.Context(), program,
		"mock", "--host", "127.0.0.1", "--port", strconv.Itoa(port), contract))
	processtest.Must(t, err)
	t.Cleanup(func() { _ = mock.Kill() })
	processtest.WaitUntil(t, "the mock listens", func() bool { return strings.Contains(mock.Stdout.String(), "listening") })
	document, err := openapi3.NewLoader().LoadFromFile(contract)
	processtest.Must(t, err)
	sdk, err := client.NewClientWithResponses("http://"+processtest.Local(port), client.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer example")
			return nil
		}))
	processtest.Must(t, err)
	for _, item := range document.Paths.Map() {
		for name, example := range item.Post.RequestBody.Value.Content["application/json"].Examples {
			text, err := json.Marshal(example.Value.Value)
			processtest.Must(t, err)
			for code := range item.Post.Responses.Map() {
				response, err := post(t, sdk, item.Post.OperationID, "code="+code, text)
				if err != nil || fmt.Sprint(response.StatusCode()) != code || !isUnderstood(response, code) {
					t.Errorf("%s %s %s: %v, %+v", item.Post.OperationID, name, code, err, response)
				}
			}
		}
		// The mock answers a wrong body with 422 where the contract has that status, and with 400 otherwise.
		response, err := post(t, sdk, item.Post.OperationID, "", []byte(`{"name":""}`))
		if err != nil || response.StatusCode() != http.StatusUnprocessableEntity {
			t.Errorf("%s: the mock takes a wrong body: %v, %+v", item.Post.OperationID, err, response)
		}
	}
}

type response interface{ StatusCode() int }

func post(t *testing.T, sdk *client.ClientWithResponses, operation, prefer string, body []byte) (response, error) {
	t.Helper()
	const json = "application/json"
	if operation == "providers_oauth2_create" {
		return sdk.ProvidersOauth2CreateWithBodyWithResponse(t.Context(),
			&client.ProvidersOauth2CreateParams{Prefer: &prefer}, json, bytes.NewReader(body))
	}
	return sdk.ProvidersWorkspaceDirectoryCreateWithBodyWithResponse(t.Context(),
		&client.ProvidersWorkspaceDirectoryCreateParams{Prefer: &prefer}, json, bytes.NewReader(body))
}

// isUnderstood reports whether the SDK parsed the body into the type of the status.
func isUnderstood(response response, code string) bool {
	value := reflect.ValueOf(response).Elem()
	for _, name := range []string{"JSON" + code, "ApplicationProblemJSON" + code} {
		if field := value.FieldByName(name); field.IsValid() && !field.IsNil() {
			return true
		}
	}
	return false
}
