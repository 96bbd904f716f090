package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/files"
)

// stopTimeout is longer than a server takes to stop after its drain delay.
const stopTimeout = 35 * time.Second

// lockDatabase waits until no other server serves a SQLite database, and returns a function that lets the next one
// serve it. It returns an error if the other server does not stop. The lock ends with the process.
func (c *Command) lockDatabase(ctx context.Context, log *serveLog) (unlock func() error, err error) {
	database := c.Database.Path
	if database == "" {
		return func() error { return nil }, nil
	}
	if err := files.CreateDir(filepath.Dir(database)); err != nil {
		return nil, err
	}
	return lockFile(database, fmt.Sprintln(processName()), (*flock.Flock).TryLock,
		func(lock *flock.Flock, holder string) error { return c.waitForLock(ctx, lock, holder, log) })
}

// LockUnserved returns an error if a server serves a SQLite database. Until unlock is called, no server starts to.
func LockUnserved(database string) (unlock func() error, err error) {
	return lockFile(database, "", (*flock.Flock).TryRLock, func(_ *flock.Flock, holder string) error {
		return fmt.Errorf("%s %s; stop the server, or pass --live", holder, database)
	})
}

// lockFile locks the lock file of a database and writes a text to it. If another program has the lock, it calls wait.
func lockFile(
	database, text string, try func(lock *flock.Flock) (bool, error), wait func(lock *flock.Flock, holder string) error,
) (unlock func() error, err error) {
	path := files.Resolve(database) + ".lock"
	holder, err := readLockFile(path)
	if err != nil {
		return nil, fmt.Errorf("lock database: %w", err)
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDWR|syscall.O_NOFOLLOW))
	isLocked, err := try(lock)
	if err == nil && !isLocked {
		err = wait(lock, holder)
	}
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
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
	host, _ := os.Hostname()
	return fmt.Sprintf("%s%d of %s", process, os.Getpid(), host)
}

// readLockFile returns which server has written the file that is locked, which is overwritten. It creates the file
// unless it exists, and returns an error if something else has written it.
func readLockFile(path string) (holder string, err error) {
	file, err := files.OpenOrCreate(path, syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
	if err != nil && !errors.Is(err, syscall.ELOOP) {
		return "", err
	}
	_ = file.Close()
	text, readErr := files.ReadSmall(path)
	if isOurs := len(text) == 0 || bytes.HasPrefix(text, []byte(process)); err != nil || readErr != nil || !isOurs {
		return "", fmt.Errorf("%s is not the lock file of a server; move it away", path)
	}
	if name := console.Printable(strings.TrimSpace(string(text))); name != "" {
		return name + " serves", nil
	}
	return "another program uses", nil
}

// waitForLock waits until the server that has the lock stops.
func (c *Command) waitForLock(ctx context.Context, lock *flock.Flock, holder string, log *serveLog) error {
	wait := c.DrainDelay + stopTimeout
	database := c.Database.Path
	log.messages.Warn("%s %s; waiting up to %s for it to stop", holder, database, wait)
	notifyManager(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=waiting for another server to stop",
		(wait + maxCleanup).Microseconds()))
	const retry = 100 * time.Millisecond
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_, err := lock.TryLockContext(limited, retry)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s %s; stop it, or use PostgreSQL to run several servers", holder, database)
	}
	return err //nolint:wrapcheck // The caller wraps it.
}
