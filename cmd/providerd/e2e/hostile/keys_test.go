//go:build slow

package hostile_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestReusedKeysTakeLittleMemory reuses the idempotency keys of the largest records with small bodies, over many
// connections: the size of the request does not bound the memory for its comparison. Eight others send the members of
// the credentials in another order, which takes the most memory.
func TestReusedKeysTakeLittleMemory(t *testing.T) {
	t.Parallel()
	connections := hostileConnections(t)
	server := serveShipped(t)
	crowd := newHostileCrowd(t, server)
	var keys []string
	for name, shape := range hostileShapes() {
		key := strings.ReplaceAll(name, " ", "-")
		status, _, err := crowd.post(t.Context(), crowd.token, shape.path, shape.make(largeBody), key)
		processtest.Must(t, err)
		if status == http.StatusCreated && shape.path == providerdtest.DirectoryPath {
			keys = append(keys, key)
		}
	}
	reuse := func(key, body string) {
		status, text, err := http.StatusServiceUnavailable, "", error(nil)
		// A busy server may have no memory for a body at the moment.
		for err == nil && status == http.StatusServiceUnavailable {
			status, text, err = crowd.post(t.Context(), crowd.token, providerdtest.DirectoryPath+"?validate_only=true", body, key)
		}
		if err != nil || status != http.StatusUnprocessableEntity || !strings.Contains(text, `"pointer":"/credentials"`) {
			t.Errorf("%s: status is %d, %v: %s", key, status, err, text)
		}
	}
	const small = `{"name":"n","delegated_subject":"a@b.c","default_group_email_domain":"b.c","credentials":{}}`
	sent := make(chan string)
	var senders sync.WaitGroup
	for range connections {
		senders.Go(func() {
			for key := range sent {
				reuse(key, small)
			}
		})
	}
	large := reordered(hostileShapes()["short names"].make(largeBody))
	for range 8 {
		senders.Go(func() {
			for range 3 {
				reuse("short-names", large)
			}
		})
	}
	for range 2 * connections / len(keys) {
		for _, key := range keys {
			sent <- key
		}
	}
	close(sent)
	senders.Wait()
	checkPeakMemory(t, server)
	t.Logf("%d connections compared small bodies with %v", connections, keys)
	server.Stop(t)
}

// reordered returns a body of short names with the members of its credentials in reverse order, one of which has another
// value of the same length.
func reordered(body string) string {
	begin, members, _ := strings.Cut(strings.TrimSuffix(body, "}}"), `"credentials":{`)
	list := strings.Split(strings.Replace(members, `"last":1`, `"last":2`, 1), ",")
	slices.Reverse(list)
	return begin + `"credentials":{` + strings.Join(list, ",") + "}}"
}
