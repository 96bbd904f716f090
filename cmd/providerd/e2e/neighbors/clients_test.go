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

	"github.com/google/uuid"

	"example.com/providerd/cmd/providerd/providerdtest"
	sdk "example.com/providerd/gen/client"
	"example.com/providerd/store/storetest/processtest"
)

// sendUnusual sends what proxies buffer, answer themselves or change, from an address of its own.
func sendUnusual(t *testing.T, proxied *providerdtest.Server, version int) {
	t.Helper()
	client, dialer := newClient(t), &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client.Transport.(*http.Transport).DialContext = dialer.DialContext
	large := strings.Replace(providerdtest.OAuth2Body, "Intranet", strings.Repeat("n", 900_000), 1)
	for _, body := range []io.Reader{
		// The length of the first is unknown.
		io.MultiReader(strings.NewReader(providerdtest.OAuth2Body)), strings.NewReader(large),
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, proxied.URL+providerdtest.OAuth2Path, body)
		processtest.Must(t, err)
		request.Header.Set("Authorization", "Bearer "+providerdtest.Token(t, proxied.Dir))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Expect", "100-continue")
		response, err := client.Do(request)
		processtest.Must(t, err, response.Body.Close())
		processtest.Expect(t, response.StatusCode == http.StatusCreated && response.ProtoMajor == version,
			"%s %s to an unusual request", response.Proto, response.Status)
	}
	// A redirect would make clients send a GET, or the body twice.
	status, text, err := proxied.Post(client, strings.TrimSuffix(providerdtest.OAuth2Path, "/"), providerdtest.OAuth2Body)
	processtest.Expect(t, err == nil && status == http.StatusNotFound, "without the slash: %d %s %v", status, text, err)
}

// useSDK sends a create twice, with the SDK for Go.
func useSDK(t *testing.T, proxied *providerdtest.Server) {
	t.Helper()
	providers := processtest.Try(sdk.New(proxied.URL, providerdtest.Token(t, proxied.Dir))).Must(t)
	request := sdk.OAuth2ProviderRequest{Name: "SDK", AuthorizationFlow: uuid.New()}
	for number := range 2 {
		var replayed bool
		_, err := providers.CreateOAuth2(t.Context(), request, sdk.WithIdempotencyKey("sdk"), sdk.WithReplayed(&replayed))
		processtest.Expect(t, err == nil && replayed == (number == 1), "create %d by SDK: %v, %t", number, err, replayed)
	}
}

// installClients installs the TypeScript SDK and the Python client of OpenAPI Generator, once for all proxies.
const installClients = `[ ! -e ready ] || exit 0
npm ci --no-audit --no-fund --prefix "$ROOT/gen/typescript"
npm pack "$ROOT/gen/typescript"
npm install --no-audit --no-fund ./providerd-client-*.tgz @openapitools/openapi-generator-cli@1.0.18-5.0.0-beta2
java -jar node_modules/@openapitools/openapi-generator-cli/bin/openapi-generator.jar generate -g python \
	-i "$ROOT/openapi.yaml" -o .
cp "$ROOT"/cmd/providerd/e2e/neighbors/testdata/clients/* .
touch ready`

// startClients starts callers of other languages. They wait about half a second after each create, when the server may
// close their connection. The function waits for them, and adds what they print to the load.
func startClients(t *testing.T, l *load, proxied *providerdtest.Server, dir string) (wait func()) {
	t.Helper()
	token, programs := providerdtest.Token(t, proxied.Dir), []*processtest.Child{}
	for _, client := range [][]string{{"node", "main.mjs", "100"}, {"/usr/bin/python3", "main.py", "200"}} {
		path, first := filepath.Join(dir, client[1]), client[2]
		programs = append(programs, launch(t, client[0], path, proxied.URL, token, first, "8", "60"))
	}
	return func() {
		t.Helper()
		for _, program := range programs {
			var printed struct {
				Created map[string]int64
				Refused int64
			}
			processtest.Must(t, program.Wait(), json.Unmarshal([]byte(program.Stdout.String()), &printed))
			t.Logf("%s created %d, refused %d: %.1000s",
				program.Command.Args[0], len(printed.Created), printed.Refused, program.Stderr)
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
	var open [places]http.Transport
	return providerdtest.StartLoad(1, func(_, n int) bool {
		transport := &open[n%places]
		transport.CloseIdleConnections()
		client := http.Client{Transport: transport, Timeout: processtest.Timeout}
		if response, err := client.Get("http://" + address); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		return true
	})
}
