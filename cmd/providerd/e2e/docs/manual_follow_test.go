package docs_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// recordsPage is the page about the ways to get records.
const recordsPage = "records.md"

// TestManualFollowsRecords keeps a record that was created before the commands of the manual began, and one that is
// created while they run.
func TestManualFollowsRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	// A job of its own ends with all its programs.
	commands := "set -m\n(\n" + providerdtest.Examples(t, recordsPage, 1)[0].Commands + ") &\n" +
		"until grep --quiet '^}' record-2.json && ! test -e record-1.json; do sleep 0.1; done 2>/dev/null\nkill -- -$!\n"
	child, err := processtest.Start(providerdtest.ShellCommand(t, dir, commands))
	processtest.Must(t, err)
	for _, name := range []string{"record-1.json", "record-2.json"} {
		created, err := server.CreateOnce(http.DefaultClient, name)
		processtest.Must(t, err)
		var kept struct {
			PK     int64
			Secret string `json:"client_secret"`
		}
		processtest.WaitUntil(t, name+" is written", func() bool {
			text, err := os.ReadFile(filepath.Join(dir, name))
			return err == nil && json.Unmarshal(text, &kept) == nil
		})
		if kept.PK != created.PK || kept.Secret != created.Secret {
			t.Errorf("%s has provider %d, want %d", name, kept.PK, created.PK)
		}
	}
	providerdtest.RunCommand(t, dir, "provider", "delete", "1", "--yes")
	if err := child.Wait(); err != nil {
		t.Errorf("%v: %s", err, child.Stderr)
	}
}
