package advice

import (
	"net/netip"
	"net/url"
	"strings"

	"example.com/providerd/store/records"
)

// maxLines is how many lines of redirect_uris are checked, which bounds the cost of a body of short lines.
const maxLines = 1000

// plainHTTP is the scheme of HTTP without TLS.
const plainHTTP = "http"

// redirectURI is a line of redirect_uris.
type redirectURI struct {
	line int
	text string
	// isMalformed is true if the text is not an absolute URI (RFC 3986, section 4.3), or is an http or https URI without a
	// host (section 3.2.2). Scheme and host are empty then.
	isMalformed bool
	// scheme and host are in lower case; the host is without its port.
	scheme, host string
	// isRepeated is true if an earlier line has the same text.
	isRepeated bool
}

// parseRedirectURIs parses the first maxLines lines of redirect_uris.
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
	// These must be percent-encoded (RFC 3986, appendix A).
	isOutsideURI := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) }
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

// client is the input of the rules for OAuth2 providers.
type client struct {
	records.OAuth2Settings
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

// isUnencrypted reports whether the URI leads over the network without TLS.
func (u redirectURI) isUnencrypted() bool {
	if u.scheme != plainHTTP || u.isLocalhost() {
		return false
	}
	address, err := netip.ParseAddr(u.host)
	return err != nil || !address.IsLoopback()
}

// isLocalhost reports whether the URI is a loopback redirect with a host name instead of an address.
func (u redirectURI) isLocalhost() bool {
	host := strings.TrimSuffix(u.host, ".")
	return u.scheme == plainHTTP && (host == "localhost" || strings.HasSuffix(host, ".localhost"))
}

func (u redirectURI) isOtherwiseMalformed() bool {
	return u.isMalformed && !u.hasBackslash() && !u.hasPlaceholder() && !u.isJoined()
}

func (u redirectURI) hasBackslash() bool { return strings.Contains(u.text, `\`) }

func (u redirectURI) hasPlaceholder() bool {
	return !u.hasBackslash() && strings.ContainsAny(u.text, "<>{}")
}

// isJoined reports whether a line looks like several URIs. The query of a URI may contain another one.
func (u redirectURI) isJoined() bool {
	path, _, _ := strings.Cut(u.text, "?")
	isSeveral := strings.Count(path, "://") > 1 || strings.HasSuffix(path, ";")
	return isSeveral && !u.hasComma() && !u.hasBackslash() && !u.hasPlaceholder()
}

func (u redirectURI) hasWildcard() bool { return strings.Contains(u.text, "*") }

func (u redirectURI) hasComma() bool { return strings.Contains(u.text, ",") }

// isNative reports whether the URI has a private-use scheme, which leads to an app on the user's device.
func (u redirectURI) isNative() bool {
	return !u.isMalformed && u.scheme != plainHTTP && u.scheme != "https"
}

func (u redirectURI) isNativeWithoutDot() bool {
	return u.isNative() && !strings.Contains(u.scheme, ".")
}
