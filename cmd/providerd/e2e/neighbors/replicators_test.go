//go:build proof

package neighbors_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

func replicators() []neighbor {
	const did = "replicated creates, a backup and a rotated key; killed, restarted, restored"
	return []neighbor{
		{
			"Litestream 0.5", did, "It copies once a second, and nothing if stopped within its first. The rest is lost with the disk. " +
				"`chmod 600` a restored file; keep `keyset.json`.",
			func(t *testing.T) (string, counts) { return replicate(t, "v0.5.18") },
		},
		{"Litestream 0.3", asAbove, alsoAbove, func(t *testing.T) (string, counts) { return replicate(t, "v0.3.13") }},
	}
}

// replicate restores a replica after the load, as after the loss of the disk.
func replicate(t *testing.T, version string) (string, counts) {
	t.Helper()
	bin := t.TempDir()
	install(t, bin, "go install github.com/benbjohnson/litestream/cmd/litestream@"+version)
	dir, restored := t.TempDir(), t.TempDir()
	server, replica := providerdtest.Serve(t, dir), "file://"+filepath.Join(t.TempDir(), "replica")
	database, litestream := filepath.Join(dir, "data", "providerd.db"), filepath.Join(bin, "litestream")
	replicator := launch(t, litestream, "replicate", database, replica)
	processtest.WaitUntil(t, "the first files are copied", func() bool {
		files := 0
		_ = filepath.WalkDir(strings.TrimPrefix(replica, "file://"), func(_ string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				files++
			}
			return nil
		})
		return files > 0
	})
	l := start(t, to(server))
	l.WaitForMore(t, 1000)
	providerdtest.RunCommand(t, dir, "backup", filepath.Join(t.TempDir(), "backup.db"))
	processtest.Must(t, replicator.Kill())
	l.WaitForMore(t, 1000)
	replicator = launch(t, litestream, "replicate", database, replica)
	providerdtest.RunCommand(t, dir, "key", "rotate")
	l.WaitForMore(t, 3000)
	l.Stop()
	copied := filepath.Join(restored, "data", "providerd.db")
	processtest.Must(t, os.Mkdir(filepath.Dir(copied), 0o700))
	counting := "SELECT count(*) >= " + strconv.Itoa(len(l.Acknowledged())) + " FROM providers"
	processtest.WaitUntil(t, "everything is copied", func() bool {
		processtest.Must(t, os.RemoveAll(copied))
		providerdtest.Run(t, litestream, "restore", "-o", copied, replica)
		return processtest.Run(t, exec.CommandContext(t.Context(), "sqlite3", copied, counting)) == "1\n"
	})
	processtest.Must(t, replicator.Kill())
	server.Kill(t)
	for _, name := range []string{"keyset.json", "initial-token"} {
		content, err := os.ReadFile(filepath.Join(dir, "data", name))
		processtest.Must(t, err, os.WriteFile(filepath.Join(restored, "data", name), content, 0o600))
	}
	processtest.Must(t, os.Chmod(copied, 0o600))
	providerdtest.CheckIntegrity(t, copied)
	providerdtest.Serve(t, restored).Stop(t)
	return version, l.count(t, providerdtest.Stored(t, restored))
}
