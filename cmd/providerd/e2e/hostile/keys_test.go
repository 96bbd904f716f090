//go:build slow

package hostile_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestHostileConcurrentKeys reuses the idempotency keys of the largest records with small bodies, over many
// connections: the size of the request does not bound the memory for its comparison.
func TestHostileConcurrentKeys(t *testing.T) {
	t.Parallel()
	connections := hostileConnections(t)
	dir := t.TempDir()
	server := serveLimited(t, dir)
	crowd := newHostileCrowd(t, server, dir)
	stored := map[string]string{}
	for name, shape := range hostileShapes() {
		key := strings.ReplaceAll(name, " ", "-")
		status, _, err := crowd.post(t.Context(), crowd.token, shape.path, shape.make(largeBody), key)
		if err != nil {
			t.Fatal(err)
		}
		if status == http.StatusCreated && shape.path == providerdtest.DirectoryPath {
			stored[key] = shape.path
		}
	}
	const small = `{"name":"n","delegated_subject":"a@b.c","default_group_email_domain":"b.c","credentials":{}}`
	keys := make(chan string)
	var senders sync.WaitGroup
	for range connections {
		senders.Go(func() {
			for key := range keys {
				status, text, err := http.StatusServiceUnavailable, "", error(nil)
				// A busy server may have no memory for a body at the moment.
				for err == nil && status == http.StatusServiceUnavailable {
					status, text, err = crowd.post(t.Context(), crowd.token, stored[key]+"?validate_only=true", small, key)
				}
				if err != nil || status != http.StatusUnprocessableEntity || !strings.Contains(text, `"pointer":"/credentials"`) {
					t.Errorf("%s: status is %d, %v: %s", key, status, err, text)
				}
			}
		})
	}
	for range 2 * connections / len(stored) {
		for key := range stored {
			keys <- key
		}
	}
	close(keys)
	senders.Wait()
	checkPeakMemory(t, server)
	t.Logf("%d connections compared small bodies with %v", connections, slices.Collect(maps.Keys(stored)))
	server.Stop(t)
}
