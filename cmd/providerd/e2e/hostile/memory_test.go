//go:build slow

package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

const largeBody = 1<<20 - 1000

// hostileConnections returns how many connections send bodies. The rest is for ordinary creates.
func hostileConnections(t *testing.T) int {
	t.Helper()
	if processtest.ProofSize(t, "hostile", 0) > 2_000 {
		return 600
	}
	return 48
}

// TestCostlyBodies sends bodies that take much memory over many connections. A third of the clients send and
// read as fast as possible, a third never finish the body, and a third never read the response. Meanwhile ordinary
// creates must succeed and the memory of the program must stay bounded, whether the bodies come from one client or from
// many. One client alone must not keep others from sending large bodies, either.
func TestCostlyBodies(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 5} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			t.Parallel()
			sendCostlyBodies(t, callers)
		})
	}
}

func sendCostlyBodies(t *testing.T, callers int) {
	server := serveShipped(t)
	crowd := newHostileCrowd(t, server.URL)
	for i := range callers {
		token := providerdtest.CreateToken(t, server.Dir, fmt.Sprint("hostile-", i), "providers_workspace_directory_create")
		crowd.tokens = append(crowd.tokens, token)
	}
	client := contracttest.Client(t)
	for range 300 {
		server.Create(t, client)
	}
	var senders sync.WaitGroup
	defer senders.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	connections := hostileConnections(t)
	for i := range connections {
		senders.Go(func() {
			shape, token := i%len(crowd.bodies), crowd.tokens[i%callers]
			body := crowd.bodies[shape]
			head := createHeader(crowd.paths[shape], token, len(body)) + "\r\n"
			switch i % 3 {
			case 0:
				crowd.exchange(ctx, t, token, i)
			case 1:
				crowd.abandon(ctx, t, head, body[:len(body)-1])
			case 2:
				crowd.abandon(ctx, t, slices.Repeat([]string{head, body}, 8)...)
			}
		})
	}
	// Others have connections of their own.
	client = contracttest.Client(t)
	for range 10 {
		server.Create(t, client)
	}
	if callers == 1 {
		for range 3 {
			large := hostileShapes()["escaped in the body"]
			server.ExpectPost(t, client, http.StatusCreated, large.path, large.make(largeBody), "")
		}
	}
	stop()
	senders.Wait()
	server.Create(t, client)
	checkPeakMemory(t, server)
	t.Logf("%d connections: statuses %v, %d resets", connections, crowd.statuses, crowd.resets.Load())
	if refused := crowd.statuses[http.StatusServiceUnavailable]; crowd.resets.Load() > int64(refused/100) {
		t.Errorf("%d resets beside %d responses to refused bodies", crowd.resets.Load(), refused)
	}
	for status := range crowd.statuses {
		isAllowed := slices.Contains([]int{http.StatusCreated, http.StatusBadRequest, http.StatusServiceUnavailable}, status)
		processtest.Expect(t, isAllowed, "%d responses have status %d", crowd.statuses[status], status)
	}
	server.Stop(t)
}

type hostileCrowd struct {
	url    string
	tokens []string
	client *http.Client
	// paths and bodies are the hostile bodies by shape, each of the maximum length.
	paths, bodies []string
	// mutex guards statuses. It also serializes the checks of responses, which take much memory.
	mutex    sync.Mutex
	statuses map[int]int
	// resets counts bodies that clients were still sending when their connections were closed.
	resets atomic.Int64
}

func newHostileCrowd(t *testing.T, url string) *hostileCrowd {
	transport := &http.Transport{MaxIdleConnsPerHost: 1_000}
	t.Cleanup(transport.CloseIdleConnections)
	crowd := &hostileCrowd{url: url, client: &http.Client{Transport: transport, Timeout: time.Minute}, statuses: map[int]int{}}
	shapes := hostileShapes()
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		crowd.paths = append(crowd.paths, shapes[name].path)
		crowd.bodies = append(crowd.bodies, shapes[name].make(largeBody))
	}
	return crowd
}

// exchange sends bodies and reads the responses until ctx is canceled.
func (c *hostileCrowd) exchange(ctx context.Context, t *testing.T, token string, number int) {
	for i := number; ctx.Err() == nil; i++ {
		shape, key := i%len(c.bodies), ""
		if i%2 == 0 {
			key = fmt.Sprintf("%d-%d", number, i)
		}
		started := time.Now()
		status, text, err := c.post(token, c.paths[shape], c.bodies[shape], key)
		// Hundreds of bodies share two processors, so a body may time out.
		if err != nil && time.Since(started) >= 30*time.Second {
			continue
		}
		// The server reads the rest of a refused body for 2 seconds, and of 64 callers of one network at a time. Others may
		// see a reset.
		if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
			c.resets.Add(1)
			continue
		}
		if err != nil {
			t.Errorf("%.50s got no response: %v", c.bodies[shape], err)
			return
		}
		processtest.Expect(t, status != http.StatusServiceUnavailable || strings.Contains(text, "/problems/overloaded"),
			"the response is %s", text)
	}
}

// post sends a body, counts the response, and checks it against the contract.
func (c *hostileCrowd) post(token, path, body, key string) (int, string, error) {
	request, err := http.NewRequest(http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.statuses[response.StatusCode]++
	return response.StatusCode, string(text), contracttest.Check(request, response, text)
}

// abandon sends as much as the server accepts, and reads nothing until ctx is canceled.
func (c *hostileCrowd) abandon(ctx context.Context, t *testing.T, parts ...string) {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		t.Error(err)
		return
	}
	context.AfterFunc(ctx, func() { _ = connection.Close() })
	for _, part := range parts {
		if _, err := io.WriteString(connection, part); err != nil {
			break
		}
	}
	<-ctx.Done()
}

// TestReusedKeysTakeLittleMemory reuses the idempotency keys of the largest records with small bodies, over many
// connections: the size of the request does not bound the memory for its comparison. Eight others send the members of
// the credentials in another order, which takes the most memory.
func TestReusedKeysTakeLittleMemory(t *testing.T) {
	t.Parallel()
	connections, server := hostileConnections(t), serveShipped(t)
	client := contracttest.ClientOver(t, &http.Transport{MaxIdleConnsPerHost: 1_000})
	var keys []string
	for name, shape := range hostileShapes() {
		key := strings.ReplaceAll(name, " ", "-")
		status, _, err := server.PostWithKey(client, shape.path, shape.make(largeBody), key)
		processtest.Must(t, err)
		if status == http.StatusCreated && shape.path == providerdtest.DirectoryPath {
			keys = append(keys, key)
		}
	}
	reuse := func(key, body string) error {
		status, text, err := http.StatusServiceUnavailable, "", error(nil)
		// A busy server may have no memory for a body at the moment.
		for err == nil && status == http.StatusServiceUnavailable {
			status, text, err = server.PostWithKey(client, providerdtest.DirectoryPath+"?validate_only=true", body, key)
		}
		if err != nil || status != http.StatusUnprocessableEntity || !strings.Contains(text, `"pointer":"/credentials"`) {
			return errors.Join(err, fmt.Errorf("%s: status is %d: %s", key, status, text))
		}
		return nil
	}
	const small = `{"name":"n","delegated_subject":"a@b.c","default_group_email_domain":"b.c","credentials":{}}`
	large := reordered(hostileShapes()["short names"].make(largeBody))
	var senders, reorderers errgroup.Group
	senders.SetLimit(connections)
	for range 8 {
		reorderers.Go(func() error {
			return errors.Join(reuse("short-names", large), reuse("short-names", large), reuse("short-names", large))
		})
	}
	for range 2 * connections / len(keys) {
		for _, key := range keys {
			senders.Go(func() error { return reuse(key, small) })
		}
	}
	processtest.Must(t, senders.Wait(), reorderers.Wait())
	checkPeakMemory(t, server)
	t.Logf("%d connections compared small bodies with %v", connections, keys)
	server.Stop(t)
}

// reordered returns a body with the members of its credentials in reverse order, one of which has another value.
func reordered(body string) string {
	begin, members, _ := strings.Cut(strings.TrimSuffix(body, "}}"), `"credentials":{`)
	list := strings.Split(strings.Replace(members, `"last":1`, `"last":2`, 1), ",")
	slices.Reverse(list)
	return begin + `"credentials":{` + strings.Join(list, ",") + "}}"
}
