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

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

const (
	// largeBody is the length of the large bodies.
	largeBody = 1<<20 - 1000
	// smallCreates is how many ordinary creates must succeed meanwhile.
	smallCreates = 10
)

// TestCostlyBodies sends bodies that take much memory over many connections. A third of the clients send and
// read as fast as possible, a third never finish the body, and a third never read the response. Meanwhile ordinary
// creates must succeed and the memory of the program must stay bounded, whether the bodies come from one client or from
// many. One client alone must not keep others from sending large bodies, either.
func TestCostlyBodies(t *testing.T) {
	t.Parallel()
	for _, callers := range []int{1, 5} {
		t.Run(fmt.Sprint(callers), func(t *testing.T) {
			t.Parallel()
			sendHostileBodies(t, callers)
		})
	}
}

func sendHostileBodies(t *testing.T, callers int) {
	t.Helper()
	connections := hostileConnections(t)
	server := serveShipped(t)
	crowd := newHostileCrowd(t, server)
	for i := range callers {
		token := providerdtest.CreateToken(t, server.Dir, fmt.Sprint("hostile-", i), "providers_workspace_directory_create")
		crowd.tokens = append(crowd.tokens, token)
	}
	crowd.create(t, 300)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var senders sync.WaitGroup
	for i := range connections {
		senders.Go(func() {
			head, body := crowd.request(i)
			switch i % 3 {
			case 0:
				crowd.exchange(ctx, t, i)
			case 1:
				crowd.abandon(ctx, t, head, body[:len(body)-1])
			case 2:
				crowd.abandon(ctx, t, slices.Repeat([]string{head, body}, 8)...)
			}
		})
	}
	crowd.create(t, smallCreates)
	if callers == 1 {
		crowd.createLarge(t)
	}
	stop()
	senders.Wait()
	crowd.create(t, 1)
	checkPeakMemory(t, server)
	t.Logf("%d connections: statuses %v, %d resets", connections, crowd.statuses, crowd.resets.Load())
	if refused := crowd.statuses[http.StatusServiceUnavailable]; crowd.resets.Load() > int64(refused/100) {
		t.Errorf("%d resets beside %d responses to refused bodies", crowd.resets.Load(), refused)
	}
	for status := range crowd.statuses {
		if !slices.Contains([]int{http.StatusCreated, http.StatusBadRequest, http.StatusServiceUnavailable}, status) {
			t.Errorf("%d responses have status %d", crowd.statuses[status], status)
		}
	}
	server.Stop(t)
}

// hostileCrowd sends hostile bodies over many connections.
type hostileCrowd struct {
	server *providerdtest.Server
	// token is for ordinary creates, and tokens are for hostile ones.
	token  string
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

func newHostileCrowd(t *testing.T, server *providerdtest.Server) *hostileCrowd {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 1_000}
	t.Cleanup(transport.CloseIdleConnections)
	crowd := &hostileCrowd{
		server: server, token: providerdtest.Token(t, server.Dir),
		client: &http.Client{Transport: transport}, statuses: map[int]int{},
	}
	shapes := hostileShapes()
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		crowd.paths = append(crowd.paths, shapes[name].path)
		crowd.bodies = append(crowd.bodies, shapes[name].make(largeBody))
	}
	return crowd
}

// create sends ordinary creates, which must succeed.
func (c *hostileCrowd) create(t *testing.T, count int) {
	t.Helper()
	for range count {
		status, text, err := c.post(t.Context(), c.token, providerdtest.OAuth2Path, `{"name":"n","authorization_flow":"`+hostileFlow+`"}`, "")
		if err != nil {
			t.Fatalf("%v: %s", err, c.server.Stderr)
		}
		if status != http.StatusCreated {
			t.Errorf("status of an ordinary create is %d: %s", status, text)
		}
	}
}

// createLarge sends creates with large bodies, which must succeed without a retry.
func (c *hostileCrowd) createLarge(t *testing.T) {
	t.Helper()
	for range 3 {
		body := hostileShapes()["escaped in the body"]
		status, text, err := c.post(t.Context(), c.token, body.path, body.make(largeBody), "")
		if err != nil || status != http.StatusCreated {
			t.Errorf("status of a large create is %d, %v: %.1000s", status, err, text)
		}
	}
}

// exchange sends bodies and reads the responses until ctx is canceled.
func (c *hostileCrowd) exchange(ctx context.Context, t *testing.T, number int) {
	t.Helper()
	for i := number; ctx.Err() == nil; i++ {
		shape, key := i%len(c.bodies), ""
		if i%2 == 0 {
			key = fmt.Sprintf("%d-%d", number, i)
		}
		started := time.Now()
		token := c.tokens[number%len(c.tokens)]
		status, text, err := c.post(context.WithoutCancel(ctx), token, c.paths[shape], c.bodies[shape], key)
		// Hundreds of bodies share two processors, so a body may time out.
		const requestTimeout = 30 * time.Second
		if err != nil && time.Since(started) >= requestTimeout {
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
		if status == http.StatusServiceUnavailable && !strings.Contains(text, "/problems/overloaded") {
			t.Errorf("the response is %s", text)
		}
		c.mutex.Lock()
		c.statuses[status]++
		c.mutex.Unlock()
	}
}

// post sends a body and checks the response against the contract.
func (c *hostileCrowd) post(ctx context.Context, token, path, body, key string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL+path, strings.NewReader(body))
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
	return response.StatusCode, string(text), contracttest.Check(request, response, text)
}

// request returns the header and the body of a hostile request.
func (c *hostileCrowd) request(number int) (head, body string) {
	shape := number % len(c.bodies)
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n\r\n", c.paths[shape], c.tokens[number%len(c.tokens)], len(c.bodies[shape])), c.bodies[shape]
}

// abandon sends as much as the server accepts, and reads nothing until ctx is canceled.
func (c *hostileCrowd) abandon(ctx context.Context, t *testing.T, parts ...string) {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(c.server.URL, "http://"))
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
