package shipped_test

import (
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestRequestsOfRelease sends the requests of providerd.http as an editor would.
func TestRequestsOfRelease(t *testing.T) {
	t.Parallel()
	server, client := providerdtest.Serve(t, t.TempDir()), contracttest.Client(t)
	file := providerdtest.Output(t, exec.CommandContext(t.Context(), "go", "run", "../../../requests"))
	text := strings.NewReplacer("{{host}}", server.URL, "{{token}}", providerdtest.Token(t, server.Dir)).Replace(file)
	requests := strings.Split(text, "\n### ")[1:]
	for _, request := range requests {
		head, body, _ := strings.Cut(request, "\n\n")
		url := regexp.MustCompile(`(?m)^POST (\S+)$`).FindStringSubmatch(head)
		sent, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url[1], strings.NewReader(body))
		processtest.Must(t, err)
		for _, header := range regexp.MustCompile(`(?m)^([\w-]+): (.+)$`).FindAllStringSubmatch(head, -1) {
			sent.Header.Set(header[1], header[2])
		}
		// The variable is another one for each request.
		sent.Header.Del("Idempotency-Key")
		response, err := client.Do(sent)
		processtest.Must(t, err)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusCreated && response.StatusCode != http.StatusOK {
			t.Errorf("%s: status is %d", head, response.StatusCode)
		}
	}
	if len(requests) != 8 {
		t.Errorf("there are %d requests, want 8", len(requests))
	}
}
