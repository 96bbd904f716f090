//go:build proof

package neighbors_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// proxies returns the proxies, and installs clients in a directory.
func proxies(clients string) []neighbor {
	const did = "HTTP/1.1 and HTTP/2; chunked, large, `Expect`; SDKs, Python; 3 restarts; idle connections closed"
	return []neighbor{
		{"nginx", did, "After 502 or 503, send again with the key.", func(t *testing.T) (string, counts) {
			return printed(t, `\d[\d.]+`, "nginx", "-v"), forward(t, clients, nginxConfig(t), "nginx", "-e", "stderr", "-c")
		}},
		{"Caddy", asAbove, alsoAbove, func(t *testing.T) (string, counts) {
			return printed(t, `\d[\d.]+`, "caddy", "version"), forward(t, clients, caddyConfig, "caddy", "run", "--adapter", "caddyfile", "--config")
		}},
		{"HAProxy", asAbove, alsoAbove, func(t *testing.T) (string, counts) {
			return printed(t, `\d[\d.]+`, "haproxy", "-v"), forward(t, clients, strings.Replace(configOf(t, "haproxy"), ":80\n", ":80\n  bind SECURE ssl crt BOTH.pem alpn h2\n", 1), "haproxy", "-db", "-f")
		}},
	}
}

const caddyConfig = `{
	admin off
	auto_https off
}
http://:80 {
	reverse_proxy 127.0.0.1:8080
}
https://SECURE {
	tls CERT.pem KEY.pem
	reverse_proxy 127.0.0.1:8080
}
`

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
		dir + "/body; proxy_temp_path " + dir + "/proxy;\n" + strings.Replace(configOf(t, "nginx"), "listen 80;", "listen :80; listen SECURE ssl http2; ssl_certificate CERT.pem; ssl_certificate_key KEY.pem;", 1) + "}\n"
}

// forward puts a proxy in front of a server that restarts under load, and then closes idle connections for newcomers.
func forward(t *testing.T, clients, config, program string, arguments ...string) counts {
	t.Helper()
	dir, local := t.TempDir(), func() string { return processtest.Local(processtest.FreePort(t)) }
	api, address, secure := local(), local(), local()
	serve := func() *providerdtest.Server {
		return providerdtest.MustStart(t, providerdtest.Command(t.Context(), dir, "serve", "--listen", api, "--trusted-proxy", "127.0.0.1", "--max-connections", strconv.Itoa(places)))
	}
	server, proxied, secured := serve(), &providerdtest.Server{URL: "http://" + address, Dir: dir}, &providerdtest.Server{URL: "https://" + secure, Dir: dir}
	providerdtest.WriteCertificate(t, dir, 1)
	both := processtest.Run(t, exec.CommandContext(t.Context(), "cat", dir+"/cert.pem", dir+"/key.pem"))
	config = strings.NewReplacer(":80\n", address+"\n", ":80;", address+";", ":80 ", address+" ", "127.0.0.1:8080", api, "SECURE", secure,
		"CERT", filepath.Join(dir, "cert"), "KEY", filepath.Join(dir, "key"), "BOTH.pem", write(t, "both.pem", both)).Replace(config)
	launch(t, program, append(arguments, write(t, "config", config))...)
	client := newClient(t)
	processtest.WaitUntil(t, program+" forwards", func() bool {
		status, _, err := proxied.Post(client, providerdtest.OAuth2Path, "")
		return err == nil && status == http.StatusBadRequest
	})
	sendUnusual(t, proxied, 1)
	sendUnusual(t, secured, 2)
	useSDK(t, proxied)
	install(t, clients, "ROOT='"+providerdtest.Path(t, ".")+"'\n"+installClients)
	processtest.WaitUntil(t, "the log has the address of the client", func() bool {
		return strings.Contains(server.Stderr.String(), " client=127.0.0.2 ")
	})
	l := start(t, func(caller int) *providerdtest.Server { return []*providerdtest.Server{proxied, secured}[caller/2%2] })
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
