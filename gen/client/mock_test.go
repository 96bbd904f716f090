//go:build slow

package client_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/client"
)

const contractPath = "../../openapi.yaml"

// startMock starts a mock server that is generated from the contract, and returns its URL.
func startMock(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs("../../.ci/node_modules/.bin/prism")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil && os.Getenv("NOTHING_LEFT_OUT") == "" {
		t.Skipf("%v; npm ci in .ci installs what is missing", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program,
		"mock", "--host", "127.0.0.1", "--port", fmt.Sprint(address.Port), contractPath)
	command.Cancel = func() error { return command.Process.Kill() }
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatalf("%v; npm ci in .ci installs what is missing", err)
	}
	t.Cleanup(func() { _ = command.Wait() })
	timer := time.AfterFunc(time.Minute, func() { _ = command.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "listening") {
			go func() {
				for lines.Scan() {
				}
			}()
			return "http://" + address.String()
		}
	}
	t.Fatalf("the mock ended before it was ready: %v", lines.Err())
	return ""
}

// TestExamplesAreUsable posts each example of a request to the mock, and lets it answer each documented status with its
// example, which the SDK must understand.
func TestExamplesAreUsable(t *testing.T) {
	t.Parallel()
	document, err := openapi3.NewLoader().LoadFromFile(contractPath)
	if err != nil {
		t.Fatal(err)
	}
	sdk, err := client.NewClientWithResponses(startMock(t), client.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.Header.Set("Authorization", "Bearer example")
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range document.Paths.Map() {
		for name, example := range item.Post.RequestBody.Value.Content["application/json"].Examples {
			text, err := json.Marshal(example.Value.Value)
			if err != nil {
				t.Fatal(err)
			}
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
