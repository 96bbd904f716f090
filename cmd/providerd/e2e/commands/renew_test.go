package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestTokenRenewedUnderLoad renews the token of callers that pick the new one up from a file; no request is refused.
func TestTokenRenewedUnderLoad(t *testing.T) {
	t.Parallel()
	const renewals, creates = 3, 100
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	client, journal := contracttest.Client(t), providerdtest.NewJournal()
	load := journal.Load(4, "load", func(name string) (providerdtest.Record, error) {
		return server.CreateOnce(client, name)
	})
	for id := range renewals {
		journal.WaitForMore(t, creates)
		text := providerdtest.RunCommand(t, dir, "token", "renew", string(rune('1'+id)), "--quiet")
		next := filepath.Join(dir, "data", "next-token")
		processtest.Must(t, os.WriteFile(next, []byte(strings.TrimSpace(text)), 0o600))
		processtest.Must(t, os.Rename(next, filepath.Join(dir, "data", "initial-token")))
	}
	journal.WaitForMore(t, creates)
	load.Stop()
	server.Stop(t)
	journal.Compare(t, providerdtest.Stored(t, dir))
}
