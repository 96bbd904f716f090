//go:build proof

package neighbors_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

const sqlite3Reader = `for command in ".backup $2" "VACUUM INTO '$2.vacuumed'" "PRAGMA wal_checkpoint(TRUNCATE)" .dump \
	VACUUM "PRAGMA wal_checkpoint(RESTART)" "SELECT count(*) FROM providers"; do
	sqlite3 -cmd ".timeout 20000" "$1" "$command"
done`

const pythonReader = `python3 -c '
import sqlite3, sys
for _ in range(20):
    connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
    assert len(connection.execute("SELECT * FROM providers").fetchall()) > 0
    connection.close()' "$1"`

// nodeReader returns a command of Node that opens the database with an expression.
func nodeReader(node, open string) string {
	return node + ` -e '
for (let n = 0; n < 20; n++) {
  const database = ` + open + `;
  if (database.prepare("SELECT * FROM providers").all().length === 0) throw new Error("no records");
  database.close();
}' "$1"`
}

// buildReaders builds the program in testdata/readers.
const buildReaders = `cp "$ROOT"/cmd/providerd/e2e/neighbors/testdata/readers/* .
go mod init readers
go get github.com/ncruces/go-sqlite3@v0.37.0 modernc.org/sqlite@v1.62.0
go mod tidy
go build -o readers .`

// read runs a command, several times, on the database of a server under load. $1 is the path of the database, and $2 of
// a copy.
func read(install, command string) trial {
	return func(t *testing.T, _ string) counts {
		t.Helper()
		bin, dir := t.TempDir(), t.TempDir()
		shell(t, bin, install)
		server, database := providerdtest.Serve(t, dir), filepath.Join(dir, "data", "providerd.db")
		l := start(t, server)
		for range 3 {
			l.WaitForMore(t, 1000)
			shell(t, bin, command, database, filepath.Join(t.TempDir(), "copied.db"))
		}
		l.WaitForMore(t, 1000)
		l.Stop()
		server.Stop(t)
		providerdtest.CheckIntegrity(t, database)
		return l.count(t, providerdtest.Stored(t, dir))
	}
}

// replicate restores a replica after the load, as after the loss of the disk.
func replicate(t *testing.T, version string) counts {
	t.Helper()
	bin, dir, replica, restored := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	shell(t, bin, "go install github.com/benbjohnson/litestream/cmd/litestream@"+version)
	server, database := providerdtest.Serve(t, dir), filepath.Join(dir, "data", "providerd.db")
	litestream, url := filepath.Join(bin, "litestream"), "file://"+replica
	replicator := launch(t, litestream, "replicate", database, url)
	processtest.WaitUntil(t, "the first files are copied", func() bool {
		return shell(t, replica, "find . -type f 2>/dev/null || true") != ""
	})
	l := start(t, server)
	l.WaitForMore(t, 1000)
	providerdtest.RunCommand(t, dir, "backup", filepath.Join(t.TempDir(), "backup.db"))
	processtest.Must(t, replicator.Kill())
	l.WaitForMore(t, 1000)
	replicator = launch(t, litestream, "replicate", database, url)
	providerdtest.RunCommand(t, dir, "key", "rotate")
	l.WaitForMore(t, 3000)
	l.Stop()
	processtest.WaitUntil(t, "everything is copied", func() bool {
		return strings.HasSuffix(shell(t, restored, `mkdir -m 700 -p data
rm -f data/providerd.db
"$1" restore -o data/providerd.db "$2"
sqlite3 data/providerd.db "SELECT count(*) >= $3 FROM providers"`,
			litestream, url, strconv.Itoa(len(l.Creates))), "1\n")
	})
	processtest.Must(t, replicator.Kill())
	server.Kill(t)
	shell(t, restored, `cp -p "$1"/data/{keyset.json,initial-token} data; chmod 600 data/providerd.db`, dir)
	providerdtest.CheckIntegrity(t, filepath.Join(restored, "data", "providerd.db"))
	providerdtest.Serve(t, restored).Stop(t)
	return l.count(t, providerdtest.Stored(t, restored))
}

// copyStopped copies the directory of a server that was killed under load, with a command.
func copyStopped(command string) trial {
	return func(t *testing.T, _ string) counts {
		t.Helper()
		dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copied")
		server := providerdtest.Serve(t, dir)
		l := start(t, server)
		l.WaitForMore(t, 1000)
		l.Stop()
		server.Kill(t)
		shell(t, dir, command, dir, copied)
		providerdtest.Serve(t, copied).Stop(t)
		providerdtest.CheckIntegrity(t, filepath.Join(copied, "data", "providerd.db"))
		return l.count(t, providerdtest.Stored(t, copied))
	}
}
