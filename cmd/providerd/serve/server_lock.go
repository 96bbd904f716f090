package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/files"
)

// errStopped means that a signal arrived before the other server had stopped.
var errStopped = errors.New("stopped before the other server did")

// stopTimeout is longer than a server takes to stop after its drain delay.
const stopTimeout = 35 * time.Second

// lockDatabase waits until no other server serves a SQLite database, and returns a function that lets the next one
// serve it. It returns an error if the other server does not stop. The lock ends with the process.
func (c *Command) lockDatabase(ctx context.Context, log *serveLog) (unlock func() error, err error) {
	database := c.Database.Path()
	if database == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(filepath.Dir(database), 0o700); err != nil {
		return nil, fmt.Errorf("create the database directory: %w", err)
	}
	path := files.Resolve(database) + ".lock"
	if err := createLockFile(path); err != nil {
		return nil, fmt.Errorf("lock database: %w", err)
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDWR|syscall.O_NOFOLLOW))
	isLocked, err := lock.TryLock()
	if err == nil && !isLocked {
		err = c.waitForLock(ctx, lock, log)
	}
	if err == nil {
		err = os.WriteFile(path, fmt.Appendln(nil, processName()), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock database: %w", err), lock.Close())
	}
	return lock.Close, nil
}

// process begins the text of a lock file.
const process = "process "

// processName names this process for people. In a container, the host name is that of the container or Pod.
func processName() string {
	name := process + strconv.Itoa(os.Getpid())
	if host, err := os.Hostname(); err == nil {
		name += " of " + host
	}
	return name
}

// createLockFile creates the file that is locked, unless it exists. It returns an error unless a server has written the
// file, which is overwritten.
func createLockFile(path string) error {
	file, err := files.OpenOrCreate(path, syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
	if err != nil && !errors.Is(err, syscall.ELOOP) {
		return err
	}
	_ = file.Close()
	text, readErr := files.ReadSmall(path)
	if isOurs := len(text) == 0 || bytes.HasPrefix(text, []byte(process)); err != nil || readErr != nil || !isOurs {
		return fmt.Errorf("%s is not the lock file of a server; move it away", path)
	}
	return nil
}

// waitForLock waits until the server that has the lock stops.
func (c *Command) waitForLock(ctx context.Context, lock *flock.Flock, log *serveLog) error {
	server := "another server"
	if name, err := files.ReadSmall(lock.Path()); err == nil && len(name) > 0 {
		server = console.Printable(strings.TrimSpace(string(name)))
	}
	wait := c.DrainDelay + stopTimeout
	database := c.Database.Path()
	log.notify(slog.LevelWarn, fmt.Sprintf("%s serves %s; waiting up to %s for it to stop", server, database, wait),
		"waiting for other server", slog.String("database", database), slog.String("server", server))
	const retry = 100 * time.Millisecond
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_, err := lock.TryLockContext(limited, retry)
	switch {
	case ctx.Err() != nil:
		return errStopped
	case !errors.Is(err, context.DeadlineExceeded):
		return err //nolint:wrapcheck // The caller wraps it.
	}
	return fmt.Errorf("%s serves %s; stop it, or use PostgreSQL to run several servers", server, database)
}
