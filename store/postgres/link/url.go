package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgpassfile"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ServerName is the name of a server's connections in pg_stat_activity, unless the URL or the environment sets another
// one, and commandName that of other programs'.
const (
	ServerName  = "providerd serve"
	commandName = "providerd"
)

// connectTimeout limits how long a connection may take to open, unless the URL sets connect_timeout.
const connectTimeout = 5 * time.Second

// URL is the parsed URL of a PostgreSQL database.
type URL struct {
	config *pgx.ConnConfig
	// hasTimeout reports whether the URL or the environment sets a connect timeout.
	hasTimeout bool
	// hasPassword reports whether the URL itself contains the password.
	hasPassword bool
}

// IsURL reports whether text is the URL of a PostgreSQL database. Schemes are case-insensitive (RFC 3986, section 3.1).
func IsURL(text string) bool {
	scheme, _, isURL := strings.Cut(strings.ToLower(text), "://")
	return isURL && (scheme == "postgres" || scheme == "postgresql")
}

// ParseURL parses a URL of the form postgres://USER@HOST:PORT,HOST:PORT/DATABASE?PARAMETER=VALUE with the parameters of
// libpq (PostgreSQL documentation, section 34.1.2). As with libpq, the environment (PGHOST, PGPASSFILE and others)
// supplies what the URL leaves out. The error never contains the password.
func ParseURL(text string) (URL, error) {
	if !IsURL(text) {
		return URL{}, errors.New("the URL of a PostgreSQL database must begin with postgres://")
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
	hasPassword := hasPassword(login, place)
	if !hasPassword && os.Getenv("PGPASSWORD") == "" {
		file, err := findPasswordFile(place)
		if err != nil {
			return URL{}, err
		}
		// Another password is that of a connection service file, which comes first.
		if file != "" && file.password(config.Host, strconv.Itoa(int(config.Port)), &config.Config) == config.Password {
			config.AfterNetConnect = file.setPassword
		}
	}
	hasTimeout := config.ConnectTimeout != 0
	if !hasTimeout {
		config.ConnectTimeout = connectTimeout
	}
	if config.ValidateConnect == nil {
		// Only the primary accepts writes.
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = commandName
	}
	// These override the settings of the role and the database. Poolers accept them.
	config.RuntimeParams["client_encoding"], config.RuntimeParams["datestyle"] = "UTF8", "ISO"
	config.RuntimeParams["timezone"], config.RuntimeParams["standard_conforming_strings"] = "UTC", "on"
	return URL{config: config, hasTimeout: hasTimeout, hasPassword: hasPassword}, nil
}

// ForServer returns the URL for a server.
func (u URL) ForServer() URL {
	if u.config.RuntimeParams["application_name"] == commandName {
		u.config = u.config.Copy()
		u.config.RuntimeParams["application_name"] = ServerName
	}
	return u
}

// errNotEscaped replaces errors that would quote the URL when it is unclear which part of it is the password.
var errNotEscaped = errors.New("parse the database URL: not of the form " +
	"postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE; escape special characters in each part, such as / as " +
	"%2F, @ as %40 and % as %25")

// reasonOf returns the reason why pgx rejects a URL, without the URL or any part of an unescaped password.
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
	remedy := "correct it in the URL or in the PG variables of the environment"
	if strings.Contains(reason, "sslmode") {
		remedy = "set it to disable, allow, prefer, require, verify-ca or verify-full"
	}
	return fmt.Errorf("parse the database URL: %s; %s", reason, remedy)
}

// HasPassword reports whether the URL itself contains the password, which any user could read in the process list.
func (u URL) HasPassword() bool { return u.hasPassword }

// String returns the URL with servers and database only, without user and password.
func (u URL) String() string {
	var hosts []string
	for _, attempt := range attemptsOf(u.config) {
		// A server may occur several times, with TLS and without.
		if host := hostOf(attempt); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return fmt.Sprintf("postgres://%s/%s", strings.Join(hosts, ","), u.config.Database)
}

// attemptsOf returns what a connection tries, in order.
func attemptsOf(config *pgx.ConnConfig) []*pgconn.FallbackConfig {
	first := &pgconn.FallbackConfig{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}
	return append([]*pgconn.FallbackConfig{first}, config.Fallbacks...)
}

func hostOf(attempt *pgconn.FallbackConfig) string {
	return fmt.Sprintf("%s:%d", attempt.Host, attempt.Port)
}

// splitLogin splits what follows the scheme as libpq does: the login ends at the first @, unless a / precedes it.
func splitLogin(rest string) (login, place string) {
	if at := strings.IndexAny(rest, "@/"); at >= 0 && rest[at] == '@' {
		return rest[:at], rest[at+1:]
	}
	return "", rest
}

// hasPassword checks where libpq finds a password. It does not use net/url, which cannot parse several hosts.
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

// passwordFile is the path of a password file that can be read again; "" if there is none.
type passwordFile string

// findPasswordFile returns the file that libpq reads. It refuses one that libpq would ignore: missing or not private.
func findPasswordFile(place string) (passwordFile, error) {
	_, query, _ := strings.Cut(place, "?")
	parameters, _ := url.ParseQuery(query)
	path := cmp.Or(parameters.Get("passfile"), os.Getenv("PGPASSFILE"))
	isNamed := path != ""
	if !isNamed {
		home, _ := os.UserHomeDir()
		path = filepath.Join(home, ".pgpass")
	}
	info, err := os.Stat(path) //nolint:gosec // The operator chooses the file.
	switch {
	case err != nil && isNamed:
		return "", fmt.Errorf("password file %s: %w; write HOST:PORT:DATABASE:USER:PASSWORD into it, or unset PGPASSFILE",
			path, errors.Unwrap(err))
	case err != nil || !info.Mode().IsRegular():
		return "", nil //nolint:nilerr // The default file is optional, and a pipe can be read only once.
	case isNamed && info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("password file %s: other users can access it; run chmod 600 %s", path, path)
	default:
		return passwordFile(path), nil
	}
}

// setPassword sets the password for the server of a new connection. It reads the file each time, because the password
// may have been changed, and each server has its own line.
func (f passwordFile) setPassword(_ context.Context, config *pgconn.Config, conn net.Conn) (net.Conn, error) {
	// The name of a socket ends with a period and the port.
	server := Of(conn).host
	at := strings.LastIndexAny(server, ":.")
	config.Password = f.password(server[:at], server[at+1:], config)
	return conn, nil
}

// password returns the password for a server. If it cannot read the file, it returns the last password.
func (f passwordFile) password(host, port string, config *pgconn.Config) string {
	file, err := pgpassfile.ReadPassfile(string(f))
	if err != nil {
		return config.Password
	}
	if strings.HasPrefix(host, "/") {
		host = "localhost"
	}
	return file.FindPassword(host, port, config.Database, config.User)
}
