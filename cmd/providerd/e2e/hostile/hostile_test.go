//go:build slow

package hostile_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// defaultHostileBodies is how many bodies are sent by default. The proof "hostile" sends more.
const defaultHostileBodies = 2_000

// maxGrowth is how many bytes the live heap may grow between a tenth of the bodies and all of them.
const maxGrowth = 5 << 20

// hostileBodies returns how many bodies to send.
func hostileBodies(t *testing.T) int {
	t.Helper()
	return processtest.ProofSize(t, "hostile", defaultHostileBodies)
}

// hostileConnections returns how many connections send bodies. The rest is for ordinary creates.
func hostileConnections(t *testing.T) int {
	t.Helper()
	if hostileBodies(t) > defaultHostileBodies {
		return 600
	}
	return 48
}

// TestHostileBodies sends random and hostile bodies. None may cause a 5xx, a response that is not in the contract, high
// memory use or a leak.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	count := hostileBodies(t)
	server := serveShipped(t, "--ops-listen", "127.0.0.1:0")
	sender := newHostileSender(t, server)
	statuses := map[int]int{}
	for i := range count / 10 {
		statuses[sender.send(t, i)]++
	}
	before := liveHeap(t, server)
	for i := count / 10; i < count; i++ {
		statuses[sender.send(t, i)]++
	}
	after := liveHeap(t, server)
	checkPeakMemory(t, server)
	server.Stop(t)
	t.Logf("%d bodies: statuses %v; live heap %d KiB after a tenth, %d KiB after all", count, statuses, before>>10, after>>10)
	if after-before > maxGrowth {
		t.Errorf("the live heap grew by %d bytes, want at most %d", after-before, maxGrowth)
	}
	for status := range statuses {
		if status >= http.StatusInternalServerError {
			t.Errorf("%d responses have status %d", statuses[status], status)
		}
	}
}

// liveHeap returns the bytes of the program's heap in use.
func liveHeap(t *testing.T, server *providerdtest.Server) int {
	t.Helper()
	url := providerdtest.OpsURL(t, server)
	var text string
	// sync.Pool releases its objects by the third garbage collection.
	for range 3 {
		_, text = providerdtest.Get(t, url+"/debug/pprof/heap?gc=1&debug=1")
	}
	return providerdtest.NumberAfter(t, text, "# HeapAlloc =")
}

// serveShipped starts the program as shipped.
func serveShipped(t *testing.T, arguments ...string) *providerdtest.Server {
	t.Helper()
	command := providerdtest.ServeCommand(t.Context(), t.TempDir(), arguments...)
	command.Path = providerdtest.Build(t)
	return providerdtest.MustStart(t, command)
}

// checkPeakMemory checks that the program has never used more than 256 MiB, and logs its peak.
func checkPeakMemory(t *testing.T, server *providerdtest.Server) {
	t.Helper()
	const maxPeakKiB = 256 << 10
	peak := providerdtest.PeakKiB(t, server.Command)
	t.Logf("peak is %d MiB", peak>>10)
	if peak == 0 || peak > maxPeakKiB {
		t.Errorf("peak is %d KiB, want at most %d", peak, maxPeakKiB)
	}
}

type hostileSender struct {
	client  *http.Client
	server  *providerdtest.Server
	random  *rand.Rand
	valid   map[string]string
	hostile []string
	shapes  map[string]hostileShape
	names   []string
}

func newHostileSender(t *testing.T, server *providerdtest.Server) *hostileSender {
	t.Helper()
	shapes := hostileShapes()
	return &hostileSender{
		client: contracttest.Client(t), server: server,
		shapes: shapes, names: slices.Sorted(maps.Keys(shapes)),
		// A fixed seed makes failures reproducible.
		random: rand.New(rand.NewPCG(1, 2)),
		valid: map[string]string{
			providerdtest.OAuth2Path: `{"name":"n","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01","redirect_uris":` +
				`"https://a\nhttps://b","access_code_validity":"hours=1;minutes=2","property_mappings":[]}`,
			providerdtest.DirectoryPath: `{"name":"n","delegated_subject":"admin@example.com","credentials":` +
				`{"a":[1.10,{"b":null}]},"default_group_email_domain":"example.com"}`,
		},
		hostile: []string{
			"", " ", "null", "[]", "{", "\xef\xbb\xbf{}", `{"name":"\ud800"}`, `{"a":1,"a":2}`, "{}{}", `{"name":1e999999}`,
			strings.Repeat(`{"a":`, 10_000), strings.Repeat("[", 100_000), `{"x":"` + strings.Repeat("x", 100_000) + `"}`,
			`{"property_mappings":[` + strings.Repeat("1,", 5_000) + `1]}`,
			`{"redirect_uris":"` + strings.Repeat(`https://a\n`, 5_000) + `\n"}`, `{"credentials":{"\u0000":"\u0000"}}`,
			`{"name":"` + strings.Repeat(" ", 50_000) + `"}`, `{"credentials":` + strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60) + "}",
		},
	}
}

// send sends the body with a number and returns the status.
func (s *hostileSender) send(t *testing.T, number int) int {
	t.Helper()
	path, body := s.body(number)
	key := ""
	if number%3 == 0 {
		key = fmt.Sprint(number)
	}
	status, text, err := s.server.PostWithKey(s.client, path, body, key)
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return status
}

func (s *hostileSender) body(number int) (path, body string) {
	path = providerdtest.OAuth2Path
	if number%2 == 1 {
		path = providerdtest.DirectoryPath
	}
	switch s.random.IntN(40) {
	case 0:
		shape := s.shapes[s.names[s.random.IntN(len(s.names))]]
		// Few bodies have the maximum length, because each takes long.
		return shape.path, shape.make(1 << (10 + s.random.IntN(11)))
	case 1:
		return path, s.hostile[s.random.IntN(len(s.hostile))]
	case 2, 3, 4, 5:
		random := make([]byte, s.random.IntN(300))
		for i := range random {
			random[i] = byte(s.random.Uint32())
		}
		return path, string(random)
	case 6, 7, 8, 9:
		return path, s.valid[path]
	default:
		return path, s.corrupt([]byte(s.valid[path]))
	}
}

// corrupt replaces some bytes of a valid body with others, with parts of JSON, or with a piece of itself.
func (s *hostileSender) corrupt(body []byte) string {
	parts := []string{`"`, "{", "}", "[", "]", ",", ":", "null", "true", "1e9", `\u0000`, `\ud83d`, "\xff", "\x00", "é", "🔑", " "}
	for range 1 + s.random.IntN(4) {
		at := s.random.IntN(len(body))
		end := min(len(body), at+s.random.IntN(8))
		var with []byte
		switch s.random.IntN(3) {
		case 0:
			with = []byte(parts[s.random.IntN(len(parts))])
		case 1:
			with = []byte{byte(s.random.Uint32())}
		case 2:
			from := s.random.IntN(len(body))
			with = body[from:min(len(body), from+20)]
		}
		body = bytes.Join([][]byte{body[:at], with, body[end:]}, nil)
	}
	return string(body)
}
