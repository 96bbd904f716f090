package client

import (
	"strconv"
	"strings"
	"time"
)

// RedirectURIs returns the value of RedirectUris for URIs, one per line. Line breaks in a URI become spaces, which
// the server refuses, so that no URI can add another one.
func RedirectURIs(uris ...string) string {
	lines := make([]string, len(uris))
	for i, uri := range uris {
		lines[i] = strings.NewReplacer("\r", " ", "\n", " ").Replace(uri)
	}
	return strings.Join(lines, "\n")
}

// Duration returns the value of AccessCodeValidity, AccessTokenValidity and RefreshTokenValidity for a duration,
// exact to the nanosecond: "hours=1;minutes=30" for 90 minutes. The server refuses a negative one.
func Duration(length time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		name   string
		number float64
	}{
		{"hours", float64(length / time.Hour)},
		{"minutes", float64(length % time.Hour / time.Minute)},
		{"seconds", (length % time.Minute).Seconds()},
	} {
		if unit.number != 0 || unit.name == "seconds" && parts == nil {
			parts = append(parts, unit.name+"="+strconv.FormatFloat(unit.number, 'f', -1, 64))
		}
	}
	return strings.Join(parts, ";")
}
