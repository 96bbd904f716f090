package client

import (
	"net/http"
	"regexp"
	"strings"
)

// Advice is what a standard advises about one field. It never causes a refusal.
type Advice struct {
	// Code identifies the rule, which the page /advice/#CODE of the server explains.
	Code string
	// Pointer leads to the field (JSON Pointer, RFC 6901).
	Pointer string
	// Detail says what could be improved, and how.
	Detail string
}

// adviceLink is a link of the contract's Link header; its title is a quoted string (RFC 9110, section 5.6.4).
var adviceLink = regexp.MustCompile(
	`</advice/#([a-z0-9_]+)>; rel="help"; anchor="#([^"]*)"; title="((?:[^"\\]|\\.)*)"`)

// adviceIn returns the advice in the Link header of a response (RFC 8288).
func adviceIn(header http.Header) []Advice {
	var given []Advice
	for _, link := range adviceLink.FindAllStringSubmatch(strings.Join(header.Values("Link"), ", "), -1) {
		detail := strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(link[3])
		given = append(given, Advice{Code: link[1], Pointer: link[2], Detail: detail})
	}
	return given
}
