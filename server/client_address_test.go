package server_test

import (
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"example.com/providerd/server"
	"example.com/providerd/store"
)

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
