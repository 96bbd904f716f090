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

// connectTimeout is how long one server of several may take to answer, unless the URL says otherwise. A server that is
// frozen accepts connections, and answers nothing; the next one, which may be the primary by then, waits for it.
const connectTimeout = time.Second

// URL says how to connect to a PostgreSQL database.
type URL struct {
	config *pgx.ConnConfig
	// hasPassword tells that the password stands in the URL itself.
	hasPassword bool
}

// IsURL tells whether a text names a PostgreSQL database.
func IsURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// ParseURL reads a URL of the form postgres://USER@HOST:PORT,HOST:PORT/DATABASE?PARAMETER=VALUE with the parameters of
// libpq (PostgreSQL documentation, section 34.1.2). What it does not say comes from the environment (PGHOST, PGPASSFILE
// and others), as with libpq. Its error never has the password.
func ParseURL(text string) (URL, error) {
	if !IsURL(text) {
		return URL{}, errors.New("the URL of a PostgreSQL database begins with postgres://")
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return URL{}, fmt.Errorf("read the URL of the database: %w", err)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.ValidateConnect == nil {
		// Only the primary can store anything.
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "providerd"
	}
	return URL{config: config, hasPassword: hasPassword(text)}, nil
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

// hasPassword looks where libpq takes a password from. Several hosts make the URL one that net/url cannot parse.
func hasPassword(text string) bool {
	_, rest, _ := strings.Cut(text, "://")
	authority, query, _ := strings.Cut(rest, "?")
	authority, _, _ = strings.Cut(authority, "/")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 && strings.Contains(authority[:at], ":") {
		return true
	}
	values, err := url.ParseQuery(query)
	return err == nil && values.Has("password")
}
