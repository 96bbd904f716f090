package serving_test

import (
	"net/http"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

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
	server.Stop(t)
	load.Stop()
	// Each caller ends with a create that no server accepts.
	clear(sent.Failures)
	sent.Compare(t, providerdtest.Stored(t, dir))
}
