//go:build proof

package neighbors_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

func copiers() []neighbor {
	const did, know = "copied `data` of a stopped server", "Stop the server, or use `backup`: a copy of a live database can be damaged."
	return []neighbor{
		{"tar", did, know, func(t *testing.T) (string, counts) {
			return printed(t, `\d[\d.]+`, "tar", "--version"), copyStopped(t, `mkdir "$2"; tar -C "$1" -cf - . | tar -C "$2" -xpf -`)
		}},
		{"rsync", asAbove, alsoAbove, func(t *testing.T) (string, counts) {
			return printed(t, `\d[\d.]+`, "rsync", "--version"), copyStopped(t, `rsync --archive "$1/" "$2"`)
		}},
	}
}

// copyStopped copies the directory of a server that was killed under load.
func copyStopped(t *testing.T, command string) counts {
	t.Helper()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copied")
	server := providerdtest.Serve(t, dir)
	l := start(t, to(server))
	l.WaitForMore(t, 1000)
	l.Stop()
	server.Kill(t)
	processtest.Run(t, exec.CommandContext(t.Context(), "bash", "-euc", command, "copy", dir, copied))
	providerdtest.Serve(t, copied).Stop(t)
	providerdtest.CheckIntegrity(t, filepath.Join(copied, "data", "providerd.db"))
	return l.count(t, providerdtest.Stored(t, copied))
}
