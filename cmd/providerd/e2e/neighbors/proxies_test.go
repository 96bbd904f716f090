//go:build proof

package neighbors_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

func proxies() []neighbor {
	const did = "forwarded kept connections; 3 restarts; chunked, large, `Expect`"
	return []neighbor{
		{"nginx", did, "After 502 or 503 during a restart, send again with the key.", func(t *testing.T) (string, counts) {
			return printed(t, `\d[\d.]+`, "nginx", "-v"), forward(t, nginxConfig(t), "nginx", "-e", "stderr", "-c")
		}},
		{"Caddy", asAbove, alsoAbove, func(t *testing.T) (string, counts) {
			return printed(t, `\d[\d.]+`, "caddy", "version"), forward(t, "{\n\tadmin off\n}\nhttp://:80 {\n\treverse_proxy 127.0.0.1:8080\n}\n", "caddy", "run", "--adapter", "caddyfile", "--config")
		}},
		{"HAProxy", asAbove, alsoAbove, func(t *testing.T) (string, counts) {
			return printed(t, `\d[\d.]+`, "haproxy", "-v"), forward(t, configOf(t, "haproxy"), "haproxy", "-db", "-f")
		}},
	}
}

// configOf returns the configuration of a program on the page.
func configOf(t *testing.T, program string) string {
	t.Helper()
	blocks := providerdtest.CodeBlocks(providerdtest.ReadFile(t, "cmd/providerd/manual/works-with.md"), program)
	if len(blocks) != 1 {
		t.Fatalf("the page has %d configurations of %s", len(blocks), program)
	}
	return blocks[0]
}

func nginxConfig(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	return "daemon off; master_process off; pid " + dir + "/pid; error_log stderr; events {}\nhttp {\naccess_log off; client_body_temp_path " +
		dir + "/body; proxy_temp_path " + dir + "/proxy;\n" + strings.Replace(configOf(t, "nginx"), "listen 80", "listen :80", 1) + "}\n"
}

// forward puts a proxy in front of a server that restarts under load.
func forward(t *testing.T, config, program string, arguments ...string) counts {
	t.Helper()
	dir, api, address := t.TempDir(), processtest.Local(processtest.FreePort(t)), processtest.Local(processtest.FreePort(t))
	serve := func() *providerdtest.Server {
		return providerdtest.MustStart(t, providerdtest.Command(t.Context(), dir, "serve", "--listen", api, "--trusted-proxy", "127.0.0.1"))
	}
	server, proxied := serve(), &providerdtest.Server{URL: "http://" + address, Dir: dir}
	config = strings.NewReplacer(":80\n", address+"\n", ":80;", address+";", ":80 ", address+" ", "127.0.0.1:8080", api).Replace(config)
	launch(t, program, append(arguments, write(t, "config", config))...)
	client := newClient(t)
	processtest.WaitUntil(t, program+" forwards", func() bool {
		status, _, err := proxied.Post(client, providerdtest.OAuth2Path, "")
		return err == nil && status == http.StatusBadRequest
	})
	sendUnusual(t, proxied)
	processtest.WaitUntil(t, "the log has the address of the client", func() bool {
		return strings.Contains(server.Stderr.String(), " client=127.0.0.2 ")
	})
	l := start(t, to(proxied))
	for range 3 {
		l.WaitForMore(t, 2000)
		server.Stop(t)
		server = serve()
	}
	l.WaitForMore(t, 2000)
	l.Stop()
	server.Stop(t)
	return l.count(t, providerdtest.Stored(t, dir))
}

// sendUnusual sends what proxies buffer, answer themselves or change, from an address of its own.
func sendUnusual(t *testing.T, proxied *providerdtest.Server) {
	t.Helper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
	t.Cleanup(client.CloseIdleConnections)
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
		if response.StatusCode != http.StatusCreated {
			t.Errorf("status of an unusual request is %d", response.StatusCode)
		}
	}
	// A redirect would make clients send a GET, or the body twice.
	status, text, err := proxied.Post(client, strings.TrimSuffix(providerdtest.OAuth2Path, "/"), providerdtest.OAuth2Body)
	if err != nil || status != http.StatusNotFound {
		t.Errorf("without the slash: %d %s %v", status, text, err)
	}
}
