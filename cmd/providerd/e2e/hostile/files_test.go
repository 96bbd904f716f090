//go:build slow

package hostile_test

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"

	"example.com/providerd/server/contracttest"
)

// untilReset is more creates, each in a transaction of its own, than come to the WAL before it is reset.
const untilReset = 600

// harmedFiles are those of a running server, with copies of an earlier time (.older) and of now (.now).
type harmedFiles struct {
	server   *providerdtest.Server
	folder   string
	database string
	client   *http.Client
	// unknown counts the creates whose outcome the server could not tell.
	unknown int
}

func newHarmedFiles(t *testing.T) *harmedFiles {
	t.Helper()
	f := &harmedFiles{folder: t.TempDir(), client: contracttest.Client(t)}
	f.database = filepath.Join(f.folder, "data", "providerd.db")
	f.server = providerdtest.Serve(t, f.folder)
	for _, suffix := range []string{".older", ".now"} {
		for range untilReset {
			f.server.Create(t, f.client)
		}
		for _, file := range []string{f.database, f.database + "-wal"} {
			if err := providerdtest.CopyFile(file, file+suffix); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f
}

// refusesEverything makes sure that creates, readiness, and commands that write fail, all with the same words.
func (f *harmedFiles) refusesEverything(t *testing.T, words string) {
	t.Helper()
	for range 20 {
		status, text, err := f.server.Post(f.client, providerdtest.OAuth2Path, providerdtest.OAuth2Body)
		if err != nil || status != http.StatusServiceUnavailable {
			t.Fatalf("create: status is %d, %v: %s", status, err, text)
		}
		if strings.Contains(text, "/problems/outcome-unknown") {
			f.unknown++
		}
	}
	if status := f.server.Send(t, f.client, http.MethodGet, "/readyz", "", "", nil); status != http.StatusServiceUnavailable {
		t.Errorf("readyz: status is %d", status)
	}
	providerdtest.WaitUntil(t, "the log says "+words, func() bool { return strings.Contains(f.server.Stderr.String(), words) })
	for _, arguments := range [][]string{
		{"token", "revoke", "1"},
		{"token", "create", "--name", "x", "--allow", "providers_oauth2_create"},
		{"key", "rotate"},
		{"application", "create", "--slug", "x", "--name", "x"},
	} {
		output, err := providerdtest.Command(t.Context(), f.folder, arguments...).CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != providerdtest.ExitFailed ||
			!strings.Contains(string(output), words) {
			t.Errorf("%v: %v: %s", arguments, err, output)
		}
	}
}

// TestHostileFiles harms the files of a running server. What is answered 201 is there once the harmed file is put back,
// whatever the server did meanwhile and when it was stopped.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]struct {
		how     func(database string) error
		words   string
		putBack func(database string) error
	}{
		"an older copy over the database": {
			func(database string) error { return providerdtest.CopyFile(database+".older", database) },
			"providerd.db does not match what SQLite wrote",
			func(database string) error { return providerdtest.CopyFile(database+".now", database) },
		},
		"the WAL cut off": {
			func(database string) error { return os.Truncate(database+"-wal", 0) },
			"providerd.db-wal does not match what SQLite wrote",
			func(database string) error { return providerdtest.CopyFile(database+"-wal.now", database+"-wal") },
		},
		"an older WAL over the WAL": {
			func(database string) error { return providerdtest.CopyFile(database+"-wal.older", database+"-wal") },
			"providerd.db-wal does not match what SQLite wrote",
			func(database string) error { return providerdtest.CopyFile(database+"-wal.now", database+"-wal") },
		},
		"the wal-index removed": {
			func(database string) error { return os.Remove(database + "-shm") },
			"providerd.db-shm was removed or replaced while in use",
			func(string) error { return nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := newHarmedFiles(t)
			if err := harm.how(files.database); err != nil {
				t.Fatal(err)
			}
			files.refusesEverything(t, harm.words)
			if err := files.server.Stop(); err == nil || !strings.Contains(files.server.Stderr.String(), harm.words) {
				t.Errorf("the server ends with %v: %s", err, files.server.Stderr)
			}
			if err := harm.putBack(files.database); err != nil {
				t.Fatal(err)
			}
			stored := providerdtest.StoredPKs(t, files.folder)
			t.Logf("%s: acknowledged %d, unknown %d, missing %d",
				name, 2*untilReset, files.unknown, max(0, 2*untilReset-len(stored)))
			if files.unknown > 1 || len(stored) < 2*untilReset || len(stored) > 2*untilReset+files.unknown {
				t.Errorf("%d records are stored, want %d and at most %d more", len(stored), 2*untilReset, files.unknown)
			}
			providerdtest.CheckIntegrity(t, files.database)
		})
	}
}
