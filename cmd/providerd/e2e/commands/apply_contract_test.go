package commands_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// A dry run sends nothing to a server whose contract does not have validate_only.
func TestDryRunSendsNothingToAServerThatWouldCreate(t *testing.T) {
	t.Parallel()
	contract, err := openapi3.NewLoader().LoadFromFile(providerdtest.Path(t, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := contract.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	now := string(text)
	for name, c := range map[string]struct {
		status   int
		contract string
		says     string
	}{
		"no operation has it": {http.StatusOK, strings.ReplaceAll(now, "validate_only", "validate"), "upgrade it"},
		"no contract":         {http.StatusOK, `{}`, "upgrade it"},
		"a page":              {http.StatusOK, `<html>hunter2`, "is this a providerd server?"},
		"too long":            {http.StatusOK, strings.Repeat(" ", 16<<20) + now, "is this a providerd server?"},
		"none":                {http.StatusNotFound, now, "there is no providerd API at http://127.0.0.1:"},
		"redirect":            {http.StatusFound, now, "The server redirects to 127.0.0.1:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int64
			stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost || r.URL.Path != "/openapi.json" {
					posts.Add(1)
				}
				w.Header().Set("Location", "/hunter2")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.contract))
			}))
			t.Cleanup(stub.Close)
			command := providerdtest.Command(t.Context(), t.TempDir(),
				"PROVIDERD_TOKEN"+"=x", "apply", "-f", "-", "--server", stub.URL, "--dry-run")
			command.Stdin = strings.NewReader(oneEntry)
			var stderr bytes.Buffer
			command.Stderr = &stderr
			if err := command.Run(); err == nil || command.ProcessState.ExitCode() != providerdtest.ExitFailed || posts.Load() != 0 ||
				!strings.Contains(stderr.String(), c.says) || strings.Contains(stderr.String(), "hunter2") ||
				!strings.Contains(stderr.String(), "nothing was sent") {
				t.Errorf("%v, %d requests: %s", err, posts.Load(), &stderr)
			}
		})
	}
}
