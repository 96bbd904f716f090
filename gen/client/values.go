package client

import (
	"fmt"
	"strings"
	"time"
)

// RedirectURIs returns the value of RedirectUris for URIs, one per line. Line breaks in a URI become spaces, so the
// server refuses it: it cannot add another URI.
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
	parts := make([]string, 0, 3)
	for _, unit := range []struct {
		name   string
		number time.Duration
	}{{"hours", length / time.Hour}, {"minutes", length % time.Hour / time.Minute}} {
		if unit.number != 0 {
			parts = append(parts, fmt.Sprintf("%s=%d", unit.name, unit.number))
		}
	}
	if seconds := length % time.Minute; seconds != 0 || len(parts) == 0 {
		number := fmt.Sprintf("%d.%09d", seconds/time.Second, seconds%time.Second)
		parts = append(parts, "seconds="+strings.TrimSuffix(strings.TrimRight(number, "0"), "."))
	}
	return strings.Join(parts, ";")
}
