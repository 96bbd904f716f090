//go:build proof

package neighbors_test

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// In the configurations, PAGE is the one on the page of the manual.
const nginxConfig = `daemon off; master_process off; pid DIR/pid; error_log stderr; events {}
http {
access_log off; client_body_temp_path DIR/body; proxy_temp_path DIR/proxy;
PAGE}
`

const caddyConfig = `{
	admin off
	auto_https off
}
http://ADDRESS {
	reverse_proxy 127.0.0.1:8080
}
https://SECURE {
	tls DIR/cert.pem DIR/key.pem
	reverse_proxy 127.0.0.1:8080
}
`

// configure returns a configuration that listens on two addresses. The certificates are in a directory.
func configure(t *testing.T, config, program, dir, api, address, secure string) string {
	t.Helper()
	blocks := providerdtest.CodeBlocks(providerdtest.ReadFile(t, "cmd/providerd/manual/works-with.md"), program)
	count := strings.Count(config, "PAGE")
	processtest.Require(t, len(blocks) == count, "the page has %d configurations of %s", len(blocks), program)
	config = strings.ReplaceAll(config, "PAGE", strings.Join(blocks, ""))
	config = strings.NewReplacer("listen 80;", `listen ADDRESS; listen SECURE ssl http2;
	ssl_certificate DIR/cert.pem; ssl_certificate_key DIR/key.pem;`,
		"bind :80\n", "bind ADDRESS\n  bind SECURE ssl crt DIR/both.pem alpn h2\n").Replace(config)
	return strings.NewReplacer("ADDRESS", address, "SECURE", secure, "DIR", dir, "127.0.0.1:8080", api).Replace(config)
}

// forward puts a proxy in front of a server that restarts under load, and then closes idle connections for newcomers.
func forward(clients, config, program string, arguments ...string) trial {
	return func(t *testing.T, _ string) counts {
		t.Helper()
		dir, local := t.TempDir(), func() string { return processtest.Local(processtest.FreePort(t)) }
		api, address, secure := local(), local(), local()
		serve := func() *providerdtest.Server {
			return providerdtest.MustStart(t, providerdtest.Command(t.Context(), dir, "serve", "--listen", api,
				"--trusted-proxy", "127.0.0.1", "--max-connections", strconv.Itoa(places)))
		}
		server, proxied := serve(), &providerdtest.Server{URL: "http://" + address, Dir: dir}
		secured := &providerdtest.Server{URL: "https://" + secure, Dir: dir}
		providerdtest.WriteCertificate(t, dir, 1)
		config := configure(t, config, program, dir, api, address, secure)
		shell(t, dir, `cat cert.pem key.pem >both.pem; printf %s "$1" >config`, config)
		launch(t, program, append(arguments, filepath.Join(dir, "config"))...)
		client := newClient(t)
		processtest.WaitUntil(t, program+" forwards", func() bool {
			status, _, err := proxied.Post(client, providerdtest.OAuth2Path, "")
			return err == nil && status == http.StatusBadRequest
		})
		sendUnusual(t, proxied, 1)
		sendUnusual(t, secured, 2)
		useSDK(t, proxied)
		shell(t, clients, installClients)
		processtest.WaitUntil(t, "the log has the address of the client", func() bool {
			return strings.Contains(server.Stderr.String(), " client=127.0.0.2 ")
		})
		l := start(t, proxied, secured)
		wait := startClients(t, l, proxied, clients)
		for range 3 {
			l.WaitForMore(t, 2000)
			server.Stop(t)
			server = serve()
		}
		l.WaitForMore(t, 2000)
		l.Stop()
		newcomers := crowd(api)
		wait()
		newcomers.Stop()
		server.Stop(t)
		return l.count(t, providerdtest.Stored(t, dir))
	}
}
