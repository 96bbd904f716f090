package serving_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

func TestLogLevels(t *testing.T) {
	t.Parallel()
	client := contracttest.Client(t)
	for arguments, want := range map[string]int{"--log-level=info": 1, "--log-level=error": 0, "--quiet": 0} {
		t.Run(arguments, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := providerdtest.Serve(t, dir, arguments)
			server.Create(t, client)
			server.MustStop(t)
			if lines := strings.Count(server.Stderr.String(), "msg=request"); lines != want {
				t.Errorf("%d lines, want %d: %s", lines, want, server.Stderr)
			}
		})
	}
}

// TestRequestsInFlightFinish stops a server under load. Exactly the acknowledged creates are stored.
func TestRequestsInFlightFinish(t *testing.T) {
	t.Parallel()
	dir, client, sent := t.TempDir(), contracttest.Client(t), providerdtest.NewJournal()
	server := providerdtest.Serve(t, dir)
	load := sent.Load(8, "load", func(name string) (providerdtest.Record, error) {
		status, record, err := server.CreateNamed(client, name, "")
		if err == nil && status != http.StatusCreated {
			t.Errorf("status is %d", status)
		}
		return record, err
	})
	sent.WaitForMore(t, 100)
	server.MustStop(t)
	load.Stop()
	// Each caller ends with a create that no server accepts.
	clear(sent.Failures)
	sent.Compare(t, providerdtest.Stored(t, dir))
}
