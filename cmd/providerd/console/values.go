package console

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/providerd/store/records"
)

// ListFlags are the flags of commands that list records of the database.
type ListFlags struct {
	DatabaseFlags
	ListFormat
}

// ListFormat is the flag for the format of a list.
type ListFormat struct {
	Output string `short:"o" default:"table" enum:"table,json" help:"Output format: ${enum} (default ${default})."`
}

// ListenAddress is HOST:PORT; port 0 selects a free port.
type ListenAddress string

// UnmarshalText checks the form of the address.
func (a *ListenAddress) UnmarshalText(text []byte) error {
	host, port, err := net.SplitHostPort(string(text))
	if host == "*" {
		return fmt.Errorf("%q is not of the form HOST:PORT; use 0.0.0.0:%s for all IPv4 addresses or [::]:%s for all", text,
			port, port)
	}
	if err != nil {
		return fmt.Errorf("%q is not of the form HOST:PORT, such as 127.0.0.1:8080", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	*a = ListenAddress(text)
	return nil
}

// Network is a range of IP addresses.
type Network netip.Prefix

// UnmarshalText parses a network in CIDR notation (RFC 4632, section 3.1), or one address.
func (n *Network) UnmarshalText(text []byte) error {
	text = bytes.TrimSpace(text)
	prefix, err := netip.ParsePrefix(string(text))
	if address, addressErr := netip.ParseAddr(string(text)); addressErr == nil && address.Zone() == "" {
		prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	switch network := prefix.Masked(); {
	case err != nil, prefix.Addr().Is4In6():
		return fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8 or fd00::/8", text)
	case prefix != network:
		return fmt.Errorf("%q is an address in a network; write %s or %s", text, network, prefix.Addr())
	}
	*n = Network(prefix)
	return nil
}

// RateLimit is the number of requests allowed in a time window. The zero value is no limit.
type RateLimit struct {
	Requests int
	Window   time.Duration
}

// UnmarshalText parses a number of requests per second, minute or hour.
func (l *RateLimit) UnmarshalText(text []byte) error {
	const most = 999_999
	number, unit, _ := strings.Cut(string(text), "/")
	requests, err := strconv.Atoi(number)
	windows := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}
	if err != nil || requests < 1 || requests > most || windows[unit] == 0 {
		return fmt.Errorf("%q is not of the form 100/s, 100/m or 100/h, with a number from 1 to %d", text, most)
	}
	*l = RateLimit{Requests: requests, Window: windows[unit]}
	return nil
}

// Day is the unit d of a Duration.
const Day = 24 * time.Hour

// Duration is a duration of at most 65,535 days.
type Duration time.Duration

// UnmarshalText parses whole days (90d), or hours, minutes and seconds as time.ParseDuration does (12h30m).
func (s *Duration) UnmarshalText(text []byte) error {
	days, isDays := bytes.CutSuffix(text, []byte("d"))
	count, err := strconv.ParseUint(string(days), 10, 16)
	duration := time.Duration(count) * Day
	if !isDays {
		duration, err = time.ParseDuration(string(text))
	}
	if err != nil || duration < 0 || duration > math.MaxUint16*Day {
		return fmt.Errorf("%q is not a duration such as 12h, 90d or 365d (a year), at most %dd", text, math.MaxUint16)
	}
	*s = Duration(duration)
	return nil
}

// Time is a point in time.
type Time time.Time

// UnmarshalText parses a time (RFC 3339), or how long ago it was.
func (m *Time) UnmarshalText(text []byte) error {
	if at, err := time.Parse(time.RFC3339, string(text)); err == nil {
		*m = Time(at)
		return nil
	}
	var ago Duration
	if err := ago.UnmarshalText(text); err != nil {
		return fmt.Errorf("%q is neither a duration such as 12h or 30d nor a time such as 2026-01-31T08:00:00Z", text)
	}
	*m = Time(time.Now().Add(-time.Duration(ago)))
	return nil
}

// Label is the name of a caller or an application.
type Label string

// UnmarshalText trims white space and refuses names that a list could not show.
func (l *Label) UnmarshalText(text []byte) error {
	const maxLength = 100
	name := string(bytes.TrimSpace(text))
	switch isHidden := func(r rune) bool { return !unicode.IsPrint(r) }; {
	case name == "":
		return errors.New("a name must not be empty")
	case utf8.RuneCountInString(name) > maxLength:
		return fmt.Errorf("a name must be at most %d characters long", maxLength)
	case maskTokens(name) != name:
		return errors.New("a name must not be an access token; everyone can see names")
	case !utf8.ValidString(name), strings.ContainsFunc(name, isHidden):
		return errors.New("a name must be UTF-8 without control characters")
	}
	*l = Label(name)
	return nil
}

// Slug is the name of an application in URLs.
type Slug string

// UnmarshalText checks the characters of the slug.
func (s *Slug) UnmarshalText(text []byte) error {
	if !regexp.MustCompile(`^[0-9A-Za-z_-]{1,100}$`).Match(text) {
		return fmt.Errorf("%q is not a slug; use 1 to 100 letters, digits, hyphens and underscores", text)
	}
	*s = Slug(text)
	return nil
}

// ProviderKind is a kind of provider.
type ProviderKind records.Kind

// UnmarshalText parses the name of a kind.
func (k *ProviderKind) UnmarshalText(text []byte) error {
	switch kind := records.Kind(text); kind {
	case records.KindOAuth2, records.KindWorkspaceDirectory:
		*k = ProviderKind(kind)
		return nil
	default:
		return fmt.Errorf("%q is not a kind of provider; use oauth2, or workspace_directory for Google Workspace", text)
	}
}

// FilterText is the value of a column. An empty one, as from a variable that is not set, would select everything.
type FilterText string

// UnmarshalText refuses values that no column can have.
func (f *FilterText) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		return errors.New("must not be empty; omit the flag to select everything")
	}
	*f = FilterText(text)
	return nil
}

// WhenNone returns what follows "none" if the text selects nothing; "" if it is empty.
func (f FilterText) WhenNone() string {
	if f == "" {
		return ""
	}
	return ": a filter selects the whole value, in the same letter case"
}

// Positive is a whole number of at least 1; 0 if the flag is absent.
type Positive int64

// UnmarshalText parses a positive number.
func (p *Positive) UnmarshalText(text []byte) error {
	number, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil || number == 0 {
		return fmt.Errorf("%q is not a whole number from 1 to %d", text, math.MaxInt64)
	}
	*p = Positive(number)
	return nil
}
