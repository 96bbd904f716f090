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
	"strings"

	"github.com/jackc/pgpassfile"
	"github.com/jackc/pgx/v5/pgconn"
)

// passwordFile is the path of a password file that can be read again; "" if there is none.
type passwordFile string

// findPasswordFile returns the file that libpq reads. It refuses one that is named but is missing, or that others can
// read: libpq ignores both silently.
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
