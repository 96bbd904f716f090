package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/gofrs/flock"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/server"
	"example.com/providerd/server/listener"
	"example.com/providerd/store"
	"example.com/providerd/store/files"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/token"
)

// maxDrainDelay is longer than any load balancer takes to notice that a server is not ready.
const maxDrainDelay = 10 * time.Minute

// maxCleanup bounds what remains after the last request: closing the database, and flushing traces and the log.
const maxCleanup = 30 * time.Second

// drainAfter returns a context that is canceled delay after ctx. In between, the server serves requests but is not
// ready, so that load balancers stop sending requests before the address closes.
func drainAfter(
	ctx context.Context, delay time.Duration, api *server.Server, logger *slog.Logger,
) (context.Context, context.CancelFunc) {
	drained, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		api.BeginDrain()
		logger.Info("shutting down", slog.Duration("drain_delay", delay), slog.Int64("drain_delay_ms", delay.Milliseconds()))
		// The service manager would otherwise kill the server if it knows a shorter time.
		longest := delay + listener.DefaultLimits().DrainTimeout + maxCleanup
		notifyManager(fmt.Sprintf("%s\nEXTEND_TIMEOUT_USEC=%d\nSTATUS=draining: not ready, still serving requests",
			daemon.SdNotifyStopping, longest.Microseconds()))
		time.AfterFunc(delay, func() {
			notifyManager("STATUS=finishing requests in flight")
			cancel()
		})
	})
	return drained, cancel
}

// notifyManager notifies the service manager at NOTIFY_SOCKET, if any (sd_notify(3)). It reports what it does not hear.
func notifyManager(state string) { _, _ = daemon.SdNotify(false, state) }

// pingWatchdog pings the service manager's watchdog, twice as often as required, as long as the process runs. A ping
// proves only that the process is scheduled. It deliberately ignores the database and the disk: a restart would repair
// neither, and would abort the requests waiting for them. /readyz reports their state.
func pingWatchdog() {
	// An error means that the service manager has set no valid interval.
	interval, _ := daemon.SdWatchdogEnabled(false)
	if interval <= 0 {
		return
	}
	for range time.Tick(max(interval/2, time.Millisecond)) {
		notifyManager(daemon.SdNotifyWatchdog)
	}
}

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
	// In a container, it is the name of the container or Pod.
	host, _ := os.Hostname()
	return lockFile(database, fmt.Sprintf("%s%d of %s\n", process, os.Getpid(), host), (*flock.Flock).TryLock,
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

// createStore opens the server's store. It reports that it created a SQLite database, as the previous one may be lost.
func createStore(ctx context.Context, f console.DatabaseFlags, log *serveLog) (*store.Store, error) {
	// The keyset of a new database is created after the database, so one that exists now is older.
	_, err := os.Stat(f.KeysetPath())
	hadKeyset := err == nil
	if f.Database.Path == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s; run \"providerd key create --keyset %s\" for an empty database, or copy the file "+
			"from another replica", seal.ErrNoKeyset, f.KeysetPath(), f.KeysetPath())
	}
	db, err := f.Database.Create(ctx, log.Logger, false)
	var opened *store.Store
	if err == nil {
		opened, err = store.Create(ctx, db, f.KeysetPath())
	}
	if err != nil {
		return nil, f.NameSource(err)
	}
	if created, ok := db.(*sqlite.Database); ok && created.IsNew() {
		log.messages.Note("created the database %s with the keyset %s", f.Database.Path, f.KeysetPath())
		if hadKeyset {
			log.messages.Warn("the keyset %s is older than the new database; if %s was lost, stop the server and restore a "+
				"backup", f.KeysetPath(), f.Database.Path)
		}
	}
	return opened, nil
}

const initialTokenDays = 90

// ensureInitialToken creates a token for the operations if a SQLite database has none, and tells the operator where it
// is, but not the token itself. It never creates one for PostgreSQL: replicas share no directory to write it to.
func (c *Command) ensureInitialToken(
	ctx context.Context, database *store.Store, operations []string, log *serveLog,
) error {
	exist, err := database.Tokens.Exist(ctx)
	if err != nil || exist {
		return err
	}
	path := c.Database.Beside(console.InitialTokenFile)
	if path == "" {
		log.messages.Warn("the database has no access token; create one with \"providerd token create\"")
		return nil
	}
	err = createInitialToken(ctx, database, path, operations)
	if errors.Is(err, token.ErrExist) {
		// Another server was faster.
		return nil
	}
	if err == nil {
		log.messages.Note(`wrote an access token to %s; it allows all operations and expires in %d days; create `+
			`others with "providerd token create"`, path, initialTokenDays)
	}
	return err
}

// createInitialToken creates a token unless the database has one, and writes it to the file at path, which gets the
// owner of its directory even when root starts the server.
func createInitialToken(ctx context.Context, database *store.Store, path string, operations []string) error {
	grant := token.Grant{Name: "initial", Operations: operations, ExpiresIn: initialTokenDays * console.Day}
	return files.WithLock(ctx, filepath.Dir(path), func() error {
		return database.Tokens.CreateFirst(ctx, grant, func(text string) error {
			owner, err := files.OwnerFor(path)
			if err != nil {
				return err
			}
			// What is there belongs to an earlier database.
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove the earlier token: %w", err)
			}
			return files.Create(path, owner, func(to io.Writer) error {
				_, err := io.WriteString(to, text+"\n")
				return err //nolint:wrapcheck // The caller names the file.
			})
		})
	})
}
