//go:build proof

package neighbors_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/cmd/providerd/providerdtest"
	sdk "example.com/providerd/gen/client"
	"example.com/providerd/store/storetest/processtest"
)

// sendUnusual sends what proxies buffer, answer themselves or change, from an address of its own.
func sendUnusual(t *testing.T, proxied *providerdtest.Server, version int) {
	t.Helper()
	client := newClient(t)
	client.Transport.(*http.Transport).DialContext = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext
	const room = 900_000
	large := `{"name":"` + strings.Repeat("n", room) + providerdtest.OAuth2Body[len(`{"name":"Intranet`):]
	for _, body := range []io.Reader{
		// The length of the first is unknown.
		io.MultiReader(strings.NewReader(providerdtest.OAuth2Body)), strings.NewReader(large),
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxied.URL+providerdtest.OAuth2Path, body)
		processtest.Must(t, err)
		request.Header = http.Header{
			"Authorization": {"Bearer " + providerdtest.Token(t, proxied.Dir)}, "Content-Type": {"application/json"}, "Expect": {"100-continue"},
		}
		response, err := client.Do(request)
		processtest.Must(t, err, response.Body.Close())
		if response.StatusCode != http.StatusCreated || response.ProtoMajor != version {
			t.Errorf("%s %s to an unusual request", response.Proto, response.Status)
		}
	}
	// A redirect would make clients send a GET, or the body twice.
	status, text, err := proxied.Post(client, strings.TrimSuffix(providerdtest.OAuth2Path, "/"), providerdtest.OAuth2Body)
	if err != nil || status != http.StatusNotFound {
		t.Errorf("without the slash: %d %s %v", status, text, err)
	}
}

// useSDK sends a create twice, with the SDK for Go.
func useSDK(t *testing.T, proxied *providerdtest.Server) {
	t.Helper()
	providers, err := sdk.New(proxied.URL, providerdtest.Token(t, proxied.Dir))
	processtest.Must(t, err)
	flow := uuid.New()
	for number := range 2 {
		var replayed bool
		request := sdk.OAuth2ProviderRequest{Name: "SDK", AuthorizationFlow: flow}
		_, err := providers.CreateOAuth2(t.Context(), request, sdk.WithIdempotencyKey("sdk"), sdk.WithReplayed(&replayed))
		if err != nil || replayed != (number == 1) {
			t.Errorf("create %d with the SDK: %v, %t", number, err, replayed)
		}
	}
}

// installClients installs the TypeScript SDK and the Python client of OpenAPI Generator, once for all proxies.
const installClients = `[ ! -e ready ] || exit 0
npm ci --no-audit --no-fund --prefix "$ROOT/gen/typescript"
npm pack "$ROOT/gen/typescript"
npm install --no-audit --no-fund ./providerd-client-*.tgz @openapitools/openapi-generator-cli@1.0.18-5.0.0-beta2
java -jar node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar generate -g python -i "$ROOT/openapi.yaml" -o .
cp "$ROOT"/cmd/providerd/e2e/neighbors/testdata/clients/* .
touch ready`

// startClients starts callers of other languages. They wait about half a second after each create, when the server may
// close their connection. The function waits for them, and adds what they print to the load.
func startClients(t *testing.T, l *load, proxied *providerdtest.Server, dir string) (wait func()) {
	t.Helper()
	token, programs := providerdtest.Token(t, proxied.Dir), []*processtest.Child{}
	for first, command := range map[string][]string{"100": {"node", "main.mjs"}, "200": {"/usr/bin/python3", "main.py"}} {
		programs = append(programs, launch(t, command[0], filepath.Join(dir, command[1]), proxied.URL, token, first, "8", "60"))
	}
	return func() {
		t.Helper()
		for _, program := range programs {
			var printed struct {
				Created map[string]int64
				Refused int64
			}
			processtest.Must(t, program.Wait(), json.Unmarshal([]byte(program.Stdout.String()), &printed))
			t.Logf("%s created %d, refused %d: %.1000s", program.Command.Args[0], len(printed.Created), printed.Refused, program.Stderr)
			for name, pk := range printed.Created {
				l.Acknowledge(providerdtest.Record{Name: name, PK: pk})
			}
			l.refused.Add(printed.Refused)
		}
	}
}

// places is how many connections a server accepts.
const places = 64

// crowd opens connections, for which the server closes those that have been idle for half a second.
func crowd(address string) *providerdtest.Load {
	var open [places]net.Conn
	return providerdtest.StartLoad(1, func(_, n int) bool {
		if last := open[n%places]; last != nil {
			_ = last.Close()
		}
		connection, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		open[n%places] = connection
		_ = connection.SetDeadline(time.Now().Add(processtest.Timeout))
		_, _ = connection.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		_, _ = connection.Read(make([]byte, 1))
		return true
	})
}
