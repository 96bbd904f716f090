package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// connectTimeout is how long a connection to a server may take to open, unless the URL says otherwise.
const connectTimeout = 5 * time.Second

// URL says how to connect to a PostgreSQL database.
type URL struct {
	config *pgx.ConnConfig
	// hasTimeout reports whether the URL, or the environment, limits how long a connection may take to open.
	hasTimeout bool
	// hasPassword tells that the password stands in the URL itself.
	hasPassword bool
}

// IsURL tells whether a text names a PostgreSQL database. Schemes have no case (RFC 3986, section 3.1).
func IsURL(text string) bool {
	scheme, _, isURL := strings.Cut(strings.ToLower(text), "://")
	return isURL && (scheme == "postgres" || scheme == "postgresql")
}

// ParseURL reads a URL of the form postgres://USER@HOST:PORT,HOST:PORT/DATABASE?PARAMETER=VALUE with the parameters of
// libpq (PostgreSQL documentation, section 34.1.2). What it does not say comes from the environment (PGHOST, PGPASSFILE
// and others), as with libpq. Its error never has the password.
func ParseURL(text string) (URL, error) {
	if !IsURL(text) {
		return URL{}, errors.New("the URL of a PostgreSQL database begins with postgres://")
	}
	_, rest, _ := strings.Cut(text, "://")
	login, place := splitLogin(rest)
	if where, _, _ := strings.Cut(place, "?"); strings.Contains(where, "@") {
		return URL{}, errNotEscaped
	}
	config, err := pgx.ParseConfig("postgres://" + rest)
	if err != nil {
		return URL{}, reasonOf(err, place)
	}
	hasTimeout := config.ConnectTimeout != 0
	if !hasTimeout {
		config.ConnectTimeout = connectTimeout
	}
	if config.ValidateConnect == nil {
		// Only the primary can store anything.
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "providerd"
	}
	return URL{config: config, hasTimeout: hasTimeout, hasPassword: hasPassword(login, place)}, nil
}

// errNotEscaped stands for what cannot be quoted, since nobody knows which part of it is the password.
var errNotEscaped = errors.New("read the URL of the database: it is not of the form " +
	"postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE; in each of these, write / as %2F, @ as %40, % as %25, " +
	"and so on")

// reasonOf says what pgx does not take in a URL. It leaves out the URL, and all that may be a password which ends
// elsewhere than was meant.
func reasonOf(err error, place string) error {
	text := err.Error()
	const afterURL = "`: "
	at := strings.LastIndex(text, afterURL)
	if at < 0 || strings.Contains(place, "@") {
		return errNotEscaped
	}
	reason := text[at+len(afterURL):]
	if strings.HasPrefix(reason, "failed to parse as URL") {
		return errNotEscaped
	}
	return errors.New("read the URL of the database: " + reason)
}

// HasPassword tells whether the password stands in the URL itself, where every user of the machine could read it from
// the list of processes.
func (u URL) HasPassword() bool { return u.hasPassword }

// String names the database without the password.
func (u URL) String() string {
	return fmt.Sprintf("postgres://%s/%s", strings.Join(hostsOf(u.config), ","), u.config.Database)
}

// hostsOf returns each server once, of which pgx may try one several times (with TLS and without).
func hostsOf(config *pgx.ConnConfig) []string {
	hosts := []string{fmt.Sprintf("%s:%d", config.Host, config.Port)}
	for _, other := range config.Fallbacks {
		host := fmt.Sprintf("%s:%d", other.Host, other.Port)
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// splitLogin splits what comes behind the scheme as libpq does: user and password end with the first @, unless a / is
// before it.
func splitLogin(rest string) (login, place string) {
	if at := strings.IndexAny(rest, "@/"); at >= 0 && rest[at] == '@' {
		return rest[:at], rest[at+1:]
	}
	return "", rest
}

// hasPassword looks where libpq takes a password from. Several hosts make the URL one that net/url cannot parse.
func hasPassword(login, place string) bool {
	if _, password, _ := strings.Cut(login, ":"); password != "" {
		return true
	}
	_, query, _ := strings.Cut(place, "?")
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		name, err := url.PathUnescape(strings.TrimSpace(name))
		if err == nil && (name == "password" || name == "sslpassword") {
			return true
		}
	}
	return false
}
