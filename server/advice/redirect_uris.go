package advice

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"example.com/providerd/store/records"
)

// maxLines and maxBytes are how much of redirect_uris is checked. They bound the cost of short lines and of long ones:
// without them, a body of 1 MiB would take 50 times as long as its create.
const (
	maxLines = 1000
	maxBytes = 64 << 10
)

const plainHTTP = "http"

var (
	// absoluteURI has the scheme and, of an authority, the host, the port with its colon, and what follows (RFC 3986).
	absoluteURI = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):(?://(?:[^@/?]*@)?` +
		`(\[v[0-9A-Fa-f]+\.[^][/?@]+\]|\[[0-9A-Fa-f:.]+\]|[^][:/?@]*)(:\d*)?([/?].*)?|/?(?:[^/].*)?)$`)
	// outsideURI matches what must be percent-encoded (RFC 3986, appendix A).
	outsideURI = regexp.MustCompile("[^!-~]|[\"<>\\\\^`{|}]|%([^0-9A-Fa-f]|.[^0-9A-Fa-f]|.?$)")
	dotSegment = regexp.MustCompile(`/(\.|%2[Ee]){1,2}(/|$)`)
	// joined matches a second URI, and a separator at the end of the path.
	joined = regexp.MustCompile(`^[^?]*(?:://[^?]*://|[,;|](?:[A-Za-z][A-Za-z0-9+.-]*:/|$))`)
	// placeholder matches what templates and shells replace.
	placeholder = regexp.MustCompile(`[<>{}]|\$[A-Z_]{2}`)
)

type redirectURI struct {
	line int
	text string
	// isMalformed is true if the text is not an absolute URI (RFC 3986), or lacks a host. Scheme and host are empty then.
	isMalformed bool
	// scheme and host are in lower case; the host is without its port.
	scheme, host string
	// isRewritten is true if clients that write URLs as browsers do (WHATWG) send another text.
	isRewritten bool
}

// parseRedirectURIs parses the first lines of redirect_uris, as far as maxLines and maxBytes allow.
func parseRedirectURIs(text string) (uris []redirectURI) {
	length := 0
	for line := range strings.Lines(text) {
		if length += len(line); len(uris) == maxLines || length > maxBytes {
			break
		}
		uri := parseRedirectURI(strings.TrimRight(line, "\r\n"))
		uri.line = len(uris) + 1
		uris = append(uris, uri)
	}
	return uris
}

func parseRedirectURI(text string) redirectURI {
	malformed := redirectURI{text: text, isMalformed: true}
	parts := absoluteURI.FindStringSubmatch(text)
	if parts == nil || outsideURI.MatchString(text) || !isHost(parts[2]) {
		return malformed
	}
	host, _ := url.PathUnescape(strings.Trim(parts[2], "[]")) // What can fail is malformed.
	uri := redirectURI{text: text, scheme: strings.ToLower(parts[1]), host: strings.ToLower(host)}
	_, err := strconv.ParseUint(cmp.Or(strings.TrimPrefix(parts[3], ":"), "0"), 10, 16)
	if err != nil || !uri.isNative() && host == "" {
		return malformed
	}
	path, _, _ := strings.Cut(parts[4], "?")
	isLower := parts[1] == uri.scheme && strings.Trim(parts[2], "[]") == uri.host
	uri.isRewritten = !uri.isNative() && (!isLower || parts[3] == ":" || dotSegment.MatchString(path))
	return uri
}

// isHost reports whether a host without brackets, or with an IPv6 address or one of a future version in them, is whole.
func isHost(text string) bool {
	if !strings.HasPrefix(text, "[") || strings.HasPrefix(strings.ToLower(text), "[v") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return err == nil
}

// client is the input of the rules for OAuth2 providers.
type client struct {
	records.OAuth2Settings
	generated    records.Generated
	redirectURIs []redirectURI
	secret       string
}

func (c client) isPublic() bool { return c.ClientType == "public" }

// hasSecret reports whether the client can keep its secret, which has at least so many bytes and fewer than others.
func (c client) hasSecret(least, below int) bool {
	return !c.isPublic() && len(c.secret) >= least && len(c.secret) < below
}

// linesWith returns a function that returns the lines of the redirect URIs for which a condition holds.
func linesWith(condition func(redirectURI) bool) func(client) lines {
	return func(c client) (found lines) {
		for _, uri := range c.redirectURIs {
			if condition(uri) {
				found = append(found, uri.line)
			}
		}
		return found
	}
}

// isUnencrypted reports whether the URI leads over the network without TLS. A redirect to localhost works like one to a
// loopback address. RFC 8252, section 8.3, advises apps against it, but only an app can choose the URI that it sends.
func (u redirectURI) isUnencrypted() bool {
	address, _ := netip.ParseAddr(u.host)
	isLocalhost := strings.HasSuffix("."+strings.TrimSuffix(u.host, "."), ".localhost")
	return u.scheme == plainHTTP && !isLocalhost && !address.IsLoopback()
}

func (u redirectURI) isOtherwiseMalformed() bool {
	return u.isMalformed && !u.isPattern() && !u.hasPlaceholder() && !u.isJoined()
}

// isPattern reports whether the line has what regular expressions have but URIs do not.
func (u redirectURI) isPattern() bool {
	return strings.Contains(u.text, `\`) || strings.Contains(u.text, ".+") || strings.Contains(u.text, "(?") ||
		strings.HasPrefix(u.text, "^") || strings.HasSuffix(u.text, "$") ||
		strings.Contains(u.text, "|") && !joined.MatchString(u.text)
}

func (u redirectURI) hasPlaceholder() bool {
	return !u.isPattern() && placeholder.MatchString(u.text)
}

// isJoined reports whether a line looks like several URIs. The query of a URI may contain another one.
func (u redirectURI) isJoined() bool {
	return joined.MatchString(u.text) && !u.isPattern() && !u.hasPlaceholder()
}

func (u redirectURI) hasWildcard() bool { return strings.Contains(u.text, "*") && !u.isPattern() }

// isNative reports whether the URI has a private-use scheme, which leads to an app on the user's device.
func (u redirectURI) isNative() bool {
	return !u.isMalformed && u.scheme != plainHTTP && u.scheme != "https"
}

func (u redirectURI) isNativeWithoutDot() bool {
	return u.isNative() && !strings.Contains(u.scheme, ".")
}
