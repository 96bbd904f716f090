//go:build slow

package hostile_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// untilReset is more creates, each in its own transaction, than the WAL takes before it is reset.
const untilReset = 600

// damagedFiles are the files of a running server, with older copies (.older) and current ones (.now).
type damagedFiles struct {
	server   *providerdtest.Server
	dir      string
	database string
	client   *http.Client
	// unknown counts the creates with an unknown outcome.
	unknown int
}

func newDamagedFiles(t *testing.T) *damagedFiles {
	t.Helper()
	f := &damagedFiles{dir: t.TempDir(), client: contracttest.Client(t)}
	f.database = filepath.Join(f.dir, "data", "providerd.db")
	f.server = providerdtest.Serve(t, f.dir)
	for _, suffix := range []string{".older", ".now"} {
		for range untilReset {
			f.server.Create(t, f.client)
		}
		for _, file := range []string{f.database, f.database + "-wal"} {
			processtest.Must(t, overwrite(file+suffix, file))
		}
	}
	return f
}

// overwrite copies a file as cp does: in place.
func overwrite(to, from string) error {
	content, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, content, 0o600))
}

// refusesEverything checks that creates, readiness, and commands that write all fail with the same words.
func (f *damagedFiles) refusesEverything(t *testing.T, words string) {
	t.Helper()
	for range 20 {
		text := f.server.ExpectPost(t, f.client, http.StatusServiceUnavailable, providerdtest.OAuth2Path, providerdtest.OAuth2Body, "")
		if strings.Contains(text, "/problems/outcome-unknown") {
			f.unknown++
		}
	}
	f.server.ExpectReadiness(t, "unavailable")
	processtest.WaitUntil(t, "the log has "+words, func() bool { return strings.Contains(f.server.Stderr.String(), words) })
	for _, arguments := range [][]string{
		{"token", "revoke", "1"},
		{"token", "create", "--name", "x", "--allow", "providers_oauth2_create"},
		{"key", "rotate"},
		{"application", "create", "x", "--name", "x"},
	} {
		providerdtest.ExpectExit(t, providerdtest.Command(t.Context(), f.dir, arguments...), providerdtest.ExitFailed, words)
	}
}

// TestDamagedFilesStopCreates damages the files of a running server. Everything acknowledged must be stored when the file is
// restored, whatever the server did in between and when it was stopped.
func TestDamagedFilesStopCreates(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]struct {
		inflict func(database string) error
		words   string
		restore func(database string) error
	}{
		"an older copy over the database": {
			func(database string) error { return overwrite(database, database+".older") },
			"providerd.db does not match what SQLite wrote",
			func(database string) error { return overwrite(database, database+".now") },
		},
		"the WAL truncated": {
			func(database string) error { return os.Truncate(database+"-wal", 0) },
			"providerd.db-wal does not match what SQLite wrote",
			func(database string) error { return overwrite(database+"-wal", database+"-wal.now") },
		},
		"an older WAL over the WAL": {
			func(database string) error { return overwrite(database+"-wal", database+"-wal.older") },
			"providerd.db-wal does not match what SQLite wrote",
			func(database string) error { return overwrite(database+"-wal", database+"-wal.now") },
		},
		"the wal-index removed": {
			func(database string) error { return os.Remove(database + "-shm") },
			"providerd.db-shm was removed or replaced while in use",
			func(string) error { return nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := newDamagedFiles(t)
			processtest.Must(t, damage.inflict(files.database))
			files.refusesEverything(t, damage.words)
			if err := files.server.Child.Stop(syscall.SIGTERM); err == nil || !strings.Contains(files.server.Stderr.String(), damage.words) {
				t.Errorf("exit: %v: %s", err, files.server.Stderr)
			}
			processtest.Must(t, damage.restore(files.database))
			stored := providerdtest.StoredPKs(t, files.dir)
			t.Logf("%s: acknowledged %d, unknown %d, missing %d",
				name, 2*untilReset, files.unknown, max(0, 2*untilReset-len(stored)))
			if files.unknown > 1 || len(stored) < 2*untilReset || len(stored) > 2*untilReset+files.unknown {
				t.Errorf("%d records are stored, want %d and at most %d more", len(stored), 2*untilReset, files.unknown)
			}
			providerdtest.CheckIntegrity(t, files.database)
		})
	}
}
