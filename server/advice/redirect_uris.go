package advice

import (
	"net/netip"
	"net/url"
	"strings"
)

// maxLines is how many lines of redirect_uris are looked at, so that a body of nothing but short lines costs little.
const maxLines = 1000

// plainHTTP is the scheme of HTTP without TLS.
const plainHTTP = "http"

// redirectURI is a line of redirect_uris.
type redirectURI struct {
	line int
	text string
	// isMalformed tells that the text is no absolute URI (RFC 3986, section 4.3), or one of http or https without a host
	// (section 3.2.2). Scheme and host are empty then.
	isMalformed bool
	// scheme and host are in lower case; the host is without its port.
	scheme, host string
	// isRepeated tells that a line before has the same text.
	isRepeated bool
}

// parseRedirectURIs reads the first lines of redirect_uris.
func parseRedirectURIs(text string) []redirectURI {
	var uris []redirectURI
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		if len(uris) == maxLines {
			break
		}
		uri := parseRedirectURI(strings.TrimRight(line, "\r\n"))
		uri.line, uri.isRepeated = len(uris)+1, seen[uri.text]
		uris = append(uris, uri)
		seen[uri.text] = true
	}
	return uris
}

func parseRedirectURI(text string) redirectURI {
	malformed := redirectURI{text: text, isMalformed: true}
	if strings.ContainsFunc(text, isOutsideURI) {
		return malformed
	}
	parsed, err := url.Parse(text)
	if err != nil || !parsed.IsAbs() {
		return malformed
	}
	uri := redirectURI{text: text, scheme: parsed.Scheme, host: strings.ToLower(parsed.Hostname())}
	if !uri.isNative() && uri.host == "" {
		return malformed
	}
	return uri
}

// isOutsideURI tells a character that a URI has only percent-encoded (RFC 3986, appendix A).
func isOutsideURI(r rune) bool {
	switch r {
	case '"', '<', '>', '\\', '^', '`', '{', '|', '}':
		return true
	default:
		return r <= ' ' || r > '~'
	}
}

// linesWith returns the lines of the redirect URIs for which a condition holds.
func (c client) linesWith(condition func(redirectURI) bool) lines {
	var found lines
	for _, uri := range c.redirectURIs {
		if condition(uri) {
			found = append(found, uri.line)
		}
	}
	return found
}

// isUnencrypted tells one that leads over the network without TLS.
func (u redirectURI) isUnencrypted() bool {
	if u.scheme != plainHTTP || u.isLocalhost() {
		return false
	}
	address, err := netip.ParseAddr(u.host)
	return err != nil || !address.IsLoopback()
}

// isLocalhost tells a loopback redirect URI that has a name for a host.
func (u redirectURI) isLocalhost() bool {
	host := strings.TrimSuffix(u.host, ".")
	return u.scheme == plainHTTP && (host == "localhost" || strings.HasSuffix(host, ".localhost"))
}

func (u redirectURI) hasWildcard() bool { return strings.Contains(u.text, "*") }

func (u redirectURI) hasComma() bool { return strings.Contains(u.text, ",") }

// isNative tells one with a private-use scheme, which leads to an app on the user's device.
func (u redirectURI) isNative() bool {
	return !u.isMalformed && u.scheme != plainHTTP && u.scheme != "https"
}

func (u redirectURI) isNativeWithoutDot() bool {
	return u.isNative() && !strings.Contains(u.scheme, ".")
}
