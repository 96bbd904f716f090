package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/providerd/server"
	"example.com/providerd/store/event"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
	"example.com/providerd/store/token"
)

// A 401 says what it saw of the header, and nothing that its sender does not know.
func TestCallerMustShowAValidToken(t *testing.T) {
	h := startParallel(t)
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
		"Bearer: " + h.token:                        {"", "The Authorization header has something other than a space after Bearer. Send"},
		"Bearer=" + h.token:                         {"", "The Authorization header has something other than a space after Bearer. Send"},
		"Bearer ":                                   {"", "The Authorization header has no token after Bearer, as if from an unset variable or a missing file. Send"},
		`"Bearer ` + h.token + `"`:                  {"", "The Authorization header is in quotation marks. Send"},
		"Bearer bearer " + h.token:                  {"unknown", " The Authorization header has the word Bearer twice;"},
		`Bearer "` + h.token + `"`:                  {"unknown", " It is in quotation marks;"},
		"Bearer " + h.token[:43]:                    {"unknown", " It is not a whole token,"},
		"Bearer x" + h.token[1:]:                    {"unknown", " It is not a whole token,"},
		`Bearer {"token":"` + h.token + `"}`:        {"unknown", " It is JSON;"},
		"Bearer " + h.token + ",":                   {"unknown", " It is not a whole token,"},
		"Bearer data/initial-token":                 {"unknown", " It is the path of a file;"},
		"Bearer ~/initial-token":                    {"unknown", " It is the path of a file;"},
		`Bearer $(cat "data/initial-token")`:        {"unknown", " It is a placeholder or a variable"},
		"Bearer ${PROVIDERD_TOKEN}":                 {"unknown", " It is a placeholder or a variable"},
		"Bearer undefined":                          {"unknown", " It is a placeholder or a variable"},
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
	processtest.Equal(t, strings.Count(h.log.String(), "not a token, or mistyped"), 14, "lines of it in %s", h.log)
	h.post(t, oauth2Path+"?access_token="+h.token, body, set("Authorization")).
		problem(t, http.StatusUnauthorized, "unauthorized")
	h.post(t, oauth2Path, body, set("Authorization", "bearer  "+h.token)).record(t)
}

// An unknown token is refused by the same steps as a revoked one. The bound is loose, so that a busy machine passes.
func TestUnknownAndRevokedTokensTakeTheSameTime(t *testing.T) {
	h := startParallel(t)
	handler := target{handler: h.newServer(t)}
	unknown, revoked := start(t).token, revokedToken(t, h)
	const tries, requests, bound = 10, 15, 5 * time.Millisecond
	// fastest returns the shortest time of several refusals of a token.
	fastest := func(token string) time.Duration {
		least := time.Hour
		for range requests {
			begun := time.Now()
			status := handler.post(oauth2Path, "{}", set("Authorization", "Bearer "+token)).status
			processtest.Require(t, status == http.StatusUnauthorized, "status is %d", status)
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
	text, token, err := h.database.Tokens.Create(t.Context(), token.Grant{
		Name: "x", Operations: []string{oauth2Operation}, ExpiresIn: time.Hour,
	})
	if err == nil {
		err = h.database.Tokens.Revoke(t.Context(), token.ID)
	}
	processtest.Must(t, err)
	return text
}

// The client's address is the rightmost hop of X-Forwarded-For that is not trusted, if the peer is trusted.
func TestClientAddressBehindProxies(t *testing.T) {
	t.Parallel()
	const peer, proxy, two = "127.0.0.1", "127.0.0.1/32", "127.0.0.1/32 10.0.0.0/8"
	h, body := start(t), encode(t, minimal(oauth2Path))
	for title, test := range map[string]struct {
		trusted string
		sent    map[string][]string
		want    string
	}{
		"no proxy is trusted":         {"", map[string][]string{"X-Forwarded-For": {"192.0.2.1"}}, peer},
		"another proxy is trusted":    {"10.0.0.0/8", map[string][]string{"X-Forwarded-For": {"192.0.2.1"}}, peer},
		"no header":                   {proxy, nil, peer},
		"an empty header":             {proxy, map[string][]string{"X-Forwarded-For": {""}}, peer},
		"one hop":                     {proxy, map[string][]string{"X-Forwarded-For": {"192.0.2.1"}}, "192.0.2.1"},
		"the rightmost hop":           {proxy, map[string][]string{"X-Forwarded-For": {"198.51.100.1, 192.0.2.1"}}, "192.0.2.1"},
		"a trusted hop":               {two, map[string][]string{"X-Forwarded-For": {"192.0.2.1,10.1.2.3"}}, "192.0.2.1"},
		"two lines":                   {two, map[string][]string{"X-Forwarded-For": {"192.0.2.1", "10.1.2.3"}}, "192.0.2.1"},
		"all are trusted":             {two, map[string][]string{"X-Forwarded-For": {"10.9.9.9, 10.1.2.3"}}, "10.9.9.9"},
		"a port":                      {proxy, map[string][]string{"X-Forwarded-For": {"192.0.2.1:4711"}}, "192.0.2.1"},
		"IPv6":                        {proxy, map[string][]string{"X-Forwarded-For": {"2001:db8::1"}}, "2001:db8::1"},
		"IPv6 in brackets":            {proxy, map[string][]string{"X-Forwarded-For": {"[2001:db8::1]"}}, "2001:db8::1"},
		"IPv6 with a port":            {proxy, map[string][]string{"X-Forwarded-For": {"[2001:db8::1]:80"}}, "2001:db8::1"},
		"a trusted IPv4-mapped hop":   {two, map[string][]string{"X-Forwarded-For": {"192.0.2.1, ::ffff:10.0.0.1"}}, "192.0.2.1"},
		"a zone":                      {proxy, map[string][]string{"X-Forwarded-For": {"fe80::1%eth0"}}, "fe80::1"},
		"a malformed hop":             {proxy, map[string][]string{"X-Forwarded-For": {"192.0.2.1, nonsense"}}, peer},
		"malformed behind a trusted":  {two, map[string][]string{"X-Forwarded-For": {"unknown, 10.1.2.3"}}, "10.1.2.3"},
		"a comma at the end":          {proxy, map[string][]string{"X-Forwarded-For": {"192.0.2.1, "}}, "192.0.2.1"},
		"an open bracket":             {proxy, map[string][]string{"X-Forwarded-For": {"[192.0.2.1"}}, peer},
		"IPv4-mapped":                 {proxy, map[string][]string{"X-Forwarded-For": {"::ffff:192.0.2.1"}}, "192.0.2.1"},
		"malformed before the client": {proxy, map[string][]string{"X-Forwarded-For": {"'; DROP, 192.0.2.1"}}, "192.0.2.1"},
		"other headers are not read": {
			proxy, map[string][]string{"Forwarded": {"for=192.0.2.1"}, "X-Real-Ip": {"192.0.2.2"}}, peer,
		},
	} {
		h.serve(t, func(config *server.Config) {
			for text := range strings.FieldsSeq(test.trusted) {
				config.Proxies = append(config.Proxies, netip.MustParsePrefix(text))
			}
		})
		id := strings.ReplaceAll(title, " ", "-")
		h.post(t, oauth2Path, body, func(r *http.Request) { maps.Copy(r.Header, test.sent) }, set("X-Request-Id", id)).record(t)
		events := storetest.Collect(t, h.database.Events.List(t.Context(), event.Filter{Kind: string(records.KindOAuth2)}, 0))
		if event := events[len(events)-1]; event.RemoteAddress != test.want || event.RequestID != id || event.Caller != "test" {
			t.Errorf("%s: the event is %+v, want the address %q", title, event, test.want)
		}
	}
}

// However many requests of a caller are concurrent, no more are allowed than the limit says. Allowed ones are refused
// because of their bodies.
func TestRateLimitOfConcurrentRequests(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes long under the race detector")
	}
	const requests, connections, each = 1000, 64, 300
	h := start(t)
	h.serve(t, func(config *server.Config) {
		config.RateLimit = server.RateLimit{Requests: requests, Window: time.Second}
	})
	var allowed atomic.Int64
	var group sync.WaitGroup
	begin := time.Now()
	for range connections {
		group.Go(func() {
			for range each {
				if h.post(t, oauth2Path, "{}").status == http.StatusBadRequest {
					allowed.Add(1)
				}
			}
		})
	}
	group.Wait()
	elapsed := time.Since(begin)
	most := int64(requests * (1 + elapsed.Seconds()))
	got := allowed.Load()
	processtest.Expect(t, got >= requests && got <= most, "%d requests in %v, want at most %d", got, elapsed, most)
}

// All requests with tokens of one name count, whatever their outcome. Other names are not affected.
func TestRateLimitIsForTheNameOfTheToken(t *testing.T) {
	h := startParallel(t)
	h.serve(t, func(config *server.Config) { config.RateLimit = server.RateLimit{Requests: 3, Window: time.Hour} })
	body := encode(t, minimal(oauth2Path))
	narrow := h.newToken(t, "test", time.Hour, oauth2Operation)
	other := h.newToken(t, "other", time.Hour, oauth2Operation)
	created := h.post(t, oauth2Path, body)
	created.record(t)
	faulty := h.post(t, oauth2Path, "{}")
	faulty.problem(t, http.StatusBadRequest, "validation-failed")
	forbidden := h.post(t, workspaceDirectoryPath, "{}", set("Authorization", "Bearer "+narrow))
	forbidden.problem(t, http.StatusForbidden, "forbidden")
	for remaining, response := range []answer{forbidden, faulty, created} {
		want := regexp.MustCompile(fmt.Sprintf(`^"caller";r=%d;t=1[12]\d\d$`, remaining))
		got := response.header.Get("RateLimit")
		processtest.Expect(t, want.MatchString(got), "RateLimit is %q, want %s", got, want)
	}
	for _, path := range []string{oauth2Path, workspaceDirectoryPath, oauth2Path + "?validate_only=true"} {
		for _, token := range []string{h.token, narrow} {
			limited := h.post(t, path, body, set("Authorization", "Bearer "+token))
			problem := limited.problem(t, http.StatusTooManyRequests, "too-many-requests")
			processtest.Contains(t, problem.Detail, "3 requests per 3600 s")
			seconds, err := strconv.Atoi(limited.header.Get("Retry-After"))
			processtest.Expect(t, err == nil && seconds >= 1 && seconds <= 1200,
				"Retry-After is %q, want 1 to 1200", limited.header.Get("Retry-After"))
			processtest.Equal(t, limited.header.Get("RateLimit"), `"caller";r=0;t=`+strconv.Itoa(seconds), "RateLimit")
			processtest.Equal(t, limited.header.Get("RateLimit-Policy"), `"caller";q=3;w=3600`, "RateLimit-Policy")
		}
	}
	h.post(t, oauth2Path, body, set("Authorization", "Bearer "+other)).record(t)
	unknown := h.post(t, oauth2Path, body, set("Authorization", mistypedToken))
	unknown.problem(t, http.StatusUnauthorized, "unauthorized")
	processtest.Equal(t, unknown.header.Get("RateLimit-Policy"), "", "RateLimit-Policy of an unknown caller")
	processtest.Equal(t, h.send(t, http.MethodGet, "/healthz", nil).status, http.StatusOK, "status without a token")
}

// mistypedToken has the wrong checksum.
const mistypedToken = "Bearer pvd_0000000000000000000000000000000000000000"

// After 20 invalid tokens, an address must wait. Valid tokens from it are still accepted, and other addresses are not
// affected. The reason for refusing a token is counted even if its address must wait.
func TestInvalidTokensAreLimitedByAddress(t *testing.T) {
	h := startParallel(t)
	const limit = 20
	handler, registry := h.startCounted(t, limit)
	body := encode(t, minimal(oauth2Path))
	expired := set("Authorization", "Bearer "+h.newToken(t, "x", -time.Second, oauth2Operation))
	for range limit {
		h.post(t, oauth2Path, body, expired).problem(t, http.StatusUnauthorized, "unauthorized")
	}
	limited := h.post(t, oauth2Path, body, expired)
	limited.problem(t, http.StatusTooManyRequests, "too-many-requests")
	if wait, err := strconv.Atoi(limited.header.Get("Retry-After")); err != nil || wait < 1 || wait > 3 {
		t.Errorf("Retry-After is %q, want 1 to 3", limited.header.Get("Retry-After"))
	}
	series := seriesOf(t, registry)
	for name, want := range map[string]float64{
		"token_refusals_total{expired}": limit + 1, "problems_total{unauthorized}": limit, "problems_total{too-many-requests}": 1,
	} {
		processtest.Equal(t, series["providerd_"+name], want, "%s", name)
	}
	h.post(t, oauth2Path, body).record(t)
	h.post(t, oauth2Path, body, set("Authorization")).problem(t, http.StatusUnauthorized, "unauthorized")

	// from sends an invalid token as if from an address.
	from := func(address string) int {
		return target{handler: handler}.post(oauth2Path, "{}", set("Authorization", mistypedToken),
			func(request *http.Request) { request.RemoteAddr = address }).status
	}
	for address, want := range map[string]int{
		"127.0.0.1:1":         http.StatusTooManyRequests,
		"192.0.2.1:1":         http.StatusUnauthorized,
		"[2001:db8::1]:1":     http.StatusUnauthorized,
		"[2001:db8:0:1::1]:1": http.StatusUnauthorized,
	} {
		processtest.Equal(t, from(address), want, "status from %s", address)
	}
	// All addresses of a /64 network count as one.
	for i := range limit {
		from("[2001:db8::" + strconv.Itoa(i+1) + "]:1")
	}
	processtest.Equal(t, from("[2001:db8::ffff]:1"), http.StatusTooManyRequests, "status from the same network")
}
