package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"example.com/providerd/server"
	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// A 401 says what it saw of the header, and nothing that its sender does not know.
func TestCallerMustShowAValidToken(t *testing.T) {
	t.Parallel()
	h := start(t)
	expired := h.newToken(t, "x", -time.Second, oauth2Operation)
	body := encode(t, minimal(oauth2Path))
	for value, want := range map[string]struct {
		// reason is that of an invalid token, and more the text after it.
		reason, more string
	}{
		none: {"", "The request has no Authorization header. Send"},
		"":   {"", "The Authorization header is empty. Send"},
		"Bearer " + h.token + "\nBearer " + h.token: {"", "The request has several Authorization headers. Send"},
		"Basic " + h.token:                          {"", "The Authorization header has a scheme other than Bearer. Send"},
		h.token:                                     {"", "The Authorization header has no scheme before the token. Send"},
		"Bearer ":                                   {"", "The Authorization header has no token after Bearer. Send"},
		`"Bearer ` + h.token + `"`:                  {"", "The Authorization header is in quotation marks. Send"},
		"Bearer bearer " + h.token:                  {"unknown", " The Authorization header has the word Bearer twice;"},
		`Bearer "` + h.token + `"`:                  {"unknown", " It is in quotation marks;"},
		"Bearer " + h.token[:43]:                    {"unknown", " It is not a whole token,"},
		"Bearer x" + h.token[1:]:                    {"unknown", " It is not a whole token,"},
		"Bearer x":                                  {"unknown", " It is not a whole token,"},
		"Bearer " + h.token + " x":                  {"unknown", " It is not a whole token,"},
		mistypedToken:                               {"unknown", " Ask the operator"},
		"Bearer " + start(t).token:                  {"unknown", " Ask the operator"},
		"Bearer " + revokedToken(t, h):              {"revoked", " Ask the operator"},
		"Bearer " + expired:                         {"expired", " It was valid until 20"},
	} {
		got := h.post(t, oauth2Path, body, setLines("Authorization", value))
		problem := got.problem(t, http.StatusUnauthorized, "unauthorized")
		challenge, detail := `Bearer realm="providerd"`, ""
		if want.reason != "" {
			detail = "The access token is " + want.reason + "."
			challenge += `, error="invalid_token", error_description="` + detail + `"`
		}
		detail += want.more
		if got := got.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, challenge) || !strings.HasPrefix(problem.Detail, detail) {
			t.Errorf("challenge is %s, want %s; detail is %q, want %q first", got, challenge, problem.Detail, detail)
		}
	}
	// Only the log tells a mistyped token from an unknown one.
	if count := strings.Count(h.log.String(), "not a token, or mistyped"); count != 7 {
		t.Errorf("%d lines of the log report a mistyped token, want 7: %s", count, h.log)
	}
	h.post(t, oauth2Path+"?access_token="+h.token, body, set("Authorization")).
		problem(t, http.StatusUnauthorized, "unauthorized")
	h.post(t, oauth2Path, body, set("Authorization", "bearer  "+h.token)).record(t)
}

// An unknown token is refused by the same steps as a revoked one. The bound is loose, so that a busy machine passes.
func TestUnknownAndRevokedTokensTakeTheSameTime(t *testing.T) {
	t.Parallel()
	h := start(t)
	handler := target{handler: h.newServer(t)}
	unknown, revoked := start(t).token, revokedToken(t, h)
	const tries, requests, bound = 10, 15, 5 * time.Millisecond
	// fastest returns the shortest time of several refusals of a token.
	fastest := func(token string) time.Duration {
		least := time.Hour
		for range requests {
			begun := time.Now()
			if status := handler.post(oauth2Path, "{}", set("Authorization", "Bearer "+token)).status; status != http.StatusUnauthorized {
				t.Fatalf("status is %d", status)
			}
			least = min(least, time.Since(begun))
		}
		return least
	}
	for range tries {
		if difference := fastest(unknown) - fastest(revoked); difference.Abs() < bound {
			return
		}
	}
	t.Errorf("the times differ by more than %v", bound)
}

func revokedToken(t *testing.T, h *harness) string {
	t.Helper()
	text, token, err := h.database.CreateToken(t.Context(), store.TokenGrant{
		Name: "x", Operations: []string{oauth2Operation}, ExpiresIn: time.Hour,
	})
	if err == nil {
		err = h.database.RevokeToken(t.Context(), token.ID)
	}
	processtest.Must(t, err)
	return text
}

// A damaged token row is an error of the storage that affects no other caller. The log names it.
func TestDamagedToken(t *testing.T) {
	t.Parallel()
	h := start(t)
	body := encode(t, minimal(oauth2Path))
	for id, statement := range []string{
		"operations = '{bad'", "operations = '7'", "operations = 'null'", "operations = ''",
	} {
		token := h.newToken(t, "x", time.Hour, oauth2Operation)
		storetest.Execute(t, h.path, fmt.Sprintf("UPDATE tokens SET %s WHERE id = %d", statement, id+2))
		got := h.post(t, oauth2Path, body, set("Authorization", "Bearer "+token))
		problem := got.problem(t, http.StatusServiceUnavailable, "storage-unavailable")
		if !strings.Contains(problem.Detail, "access token is damaged") || got.header.Get("Retry-After") != "86400" {
			t.Errorf("%s: Retry-After is %q, detail %s", statement, got.header.Get("Retry-After"), problem.Detail)
		}
		if want := fmt.Sprintf("token %d: its row is damaged", id+2); strings.Count(h.log.String(), want) != 1 {
			t.Errorf("%s: the log does not say %q: %s", statement, want, h.log)
		}
	}
	h.post(t, oauth2Path, body).record(t)
}

func TestTokenMustAllowTheOperation(t *testing.T) {
	t.Parallel()
	h := start(t)
	token := h.newToken(t, "x", time.Hour, oauth2Operation)
	authorize := set("Authorization", "Bearer "+token)
	h.post(t, oauth2Path, encode(t, minimal(oauth2Path)), authorize).record(t)
	got := h.post(t, workspaceDirectoryPath, encode(t, minimal(workspaceDirectoryPath)), authorize)
	got.problem(t, http.StatusForbidden, "forbidden")
	want := `Bearer realm="providerd", error="insufficient_scope", scope="providers_workspace_directory_create"`
	if challenge := got.header.Get("WWW-Authenticate"); challenge != want {
		t.Errorf("challenge is %s, want %s", challenge, want)
	}
}

// The client's address is the rightmost hop of X-Forwarded-For that is not trusted, if the peer is trusted.
func TestClientAddressBehindProxies(t *testing.T) {
	t.Parallel()
	const peer = "127.0.0.1"
	for title, test := range map[string]struct {
		trusted string
		sent    map[string][]string
		want    string
	}{
		"no proxy is trusted":         {"", map[string][]string{"X-Forwarded-For": {"192.0.2.1"}}, peer},
		"another proxy is trusted":    {"10.0.0.0/8", map[string][]string{"X-Forwarded-For": {"192.0.2.1"}}, peer},
		"no header":                   {peer, nil, peer},
		"an empty header":             {peer, map[string][]string{"X-Forwarded-For": {""}}, peer},
		"one hop":                     {peer, map[string][]string{"X-Forwarded-For": {"192.0.2.1"}}, "192.0.2.1"},
		"the rightmost hop":           {peer, map[string][]string{"X-Forwarded-For": {"198.51.100.1, 192.0.2.1"}}, "192.0.2.1"},
		"a trusted hop":               {peer + " 10.0.0.0/8", map[string][]string{"X-Forwarded-For": {"192.0.2.1,10.1.2.3"}}, "192.0.2.1"},
		"two lines":                   {peer + " 10.0.0.0/8", map[string][]string{"X-Forwarded-For": {"192.0.2.1", "10.1.2.3"}}, "192.0.2.1"},
		"all are trusted":             {peer + " 10.0.0.0/8", map[string][]string{"X-Forwarded-For": {"10.9.9.9, 10.1.2.3"}}, "10.9.9.9"},
		"a port":                      {peer, map[string][]string{"X-Forwarded-For": {"192.0.2.1:4711"}}, "192.0.2.1"},
		"IPv6":                        {peer, map[string][]string{"X-Forwarded-For": {"2001:db8::1"}}, "2001:db8::1"},
		"IPv6 in brackets":            {peer, map[string][]string{"X-Forwarded-For": {"[2001:db8::1]"}}, "2001:db8::1"},
		"IPv6 with a port":            {peer, map[string][]string{"X-Forwarded-For": {"[2001:db8::1]:80"}}, "2001:db8::1"},
		"a trusted IPv4-mapped hop":   {peer + " 10.0.0.0/8", map[string][]string{"X-Forwarded-For": {"192.0.2.1, ::ffff:10.0.0.1"}}, "192.0.2.1"},
		"a zone":                      {peer, map[string][]string{"X-Forwarded-For": {"fe80::1%eth0"}}, "fe80::1"},
		"a malformed hop":             {peer, map[string][]string{"X-Forwarded-For": {"192.0.2.1, nonsense"}}, peer},
		"malformed behind a trusted":  {peer + " 10.0.0.0/8", map[string][]string{"X-Forwarded-For": {"unknown, 10.1.2.3"}}, "10.1.2.3"},
		"a comma at the end":          {peer, map[string][]string{"X-Forwarded-For": {"192.0.2.1, "}}, "192.0.2.1"},
		"an open bracket":             {peer, map[string][]string{"X-Forwarded-For": {"[192.0.2.1"}}, peer},
		"IPv4-mapped":                 {peer, map[string][]string{"X-Forwarded-For": {"::ffff:192.0.2.1"}}, "192.0.2.1"},
		"malformed before the client": {peer, map[string][]string{"X-Forwarded-For": {"'; DROP, 192.0.2.1"}}, "192.0.2.1"},
		"other headers are not read": {
			peer, map[string][]string{"Forwarded": {"for=192.0.2.1"}, "X-Real-Ip": {"192.0.2.2"}}, peer,
		},
	} {
		t.Run(strings.ReplaceAll(title, " ", "-"), func(t *testing.T) {
			t.Parallel()
			h := start(t)
			h.serve(t, func(config *server.Config) {
				for text := range strings.FieldsSeq(test.trusted) {
					if !strings.Contains(text, "/") {
						text += "/32"
					}
					config.Proxies = append(config.Proxies, netip.MustParsePrefix(text))
				}
			})
			h.post(t, oauth2Path, encode(t, minimal(oauth2Path)), func(r *http.Request) {
				maps.Copy(r.Header, test.sent)
			}, set("X-Request-Id", "req-1")).record(t)
			for event, err := range h.database.Events(t.Context(), store.EventFilter{Kind: store.KindOAuth2}, 0) {
				if err != nil || event.RemoteAddress != test.want || event.RequestID != "req-1" || event.Caller != "test" {
					t.Errorf("the event is %+v, %v, want the address %q", event, err, test.want)
				}
			}
		})
	}
}
