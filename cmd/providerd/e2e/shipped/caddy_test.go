//go:build slow

package shipped_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// TestCaddyForwards runs the Caddyfile in front of a server that trusts it. The log has the address of the client, not
// the one that the client claims.
func TestCaddyForwards(t *testing.T) {
	t.Parallel()
	processtest.NeedPrograms(t, "caddy", "caddy")
	server := providerdtest.Serve(t, t.TempDir(), "--trusted-proxy", "127.0.0.1")
	proxy := "http://" + processtest.Local(processtest.FreePort(t))
	text := strings.Replace(providerdtest.ReadFile(t, "cmd/providerd/deploy/Caddyfile"), "{$DOMAIN:localhost}", proxy, 1)
	text = regexp.MustCompile(`dynamic a api 8080 \{[^}]*\}`).ReplaceAllString(text, "to "+server.URL)
	dir := t.TempDir()
	path := filepath.Join(dir, "Caddyfile")
	processtest.Must(t, os.WriteFile(path, []byte("{\n\tadmin off\n}\n"+text), 0o600))
	command := exec.CommandContext(t.Context(), "caddy", "run", "--adapter", "caddyfile", "--config", path)
	command.Env = append(os.Environ(), "HOME="+dir)
	caddy, err := processtest.Start(command)
	processtest.Must(t, err)
	t.Cleanup(func() { _ = caddy.Kill() })
	// The client has another address than the proxy.
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
	token, header := providerdtest.Token(t, server.Dir), http.Header{"Content-Type": {"application/json"}, "X-Forwarded-For": {"192.0.2.1"}}
	processtest.WaitUntil(t, "Caddy forwards", func() bool {
		status, _, err := (&providerdtest.Server{URL: proxy}).Do(client, http.MethodPost, providerdtest.OAuth2Path, token, providerdtest.OAuth2Body, header)
		return err == nil && status == http.StatusCreated
	})
	server.Stop(t)
	if log := server.Stderr.String(); !strings.Contains(log, " client=127.0.0.2 ") || strings.Contains(log, "192.0.2.1") {
		t.Errorf("the log is %s", log)
	}
}
