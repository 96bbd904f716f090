//go:build slow

package changes_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// records is the number of entries of the file.
const records = 40

// ledger is a database with a history, and what was kept of it.
type ledger struct {
	*site
	// copy returns the URL of a copy of the database.
	copy func(t *testing.T) (url string)
	// setSequence is the format of a statement that sets the last pk, and longAgo is a time.
	setSequence, longAgo string
	// disable disables the trigger of creates, notList makes a list something else, and blob is the type of bytes.
	disable, notList, blob string
	// lastEvent is the id of the last line.
	lastEvent int64
}

// keep makes a history of creates, updates, renames and deletions, and keeps the lines. They show that an older copy is
// not the database.
func (l *ledger) keep(t *testing.T) {
	t.Helper()
	m := newModel(31)
	for range 3 {
		m.change(records)
		m.write(t, l.Dir)
		l.RunCommand(t, "apply", "-f", "model.yaml", "--as", "initial", "--yes", "--prune=5000")
	}
	server, client := l.Replicas[0], contracttest.Client(t)
	for i := range 5 {
		body := fmt.Sprintf(`{"name": "Directory %d", "delegated_subject": "admin@example.com",
			"credentials": {"canary": %d}, "default_group_email_domain": "example.com"}`, i, i)
		server.ExpectPost(t, client, http.StatusCreated, providerdtest.DirectoryPath, body, "")
	}
	for _, each := range l.Replicas {
		each.Stop(t)
	}
	older := l.copy(t)
	const last = "workspace_directory: [{name: Last, delegated_subject: admin@example.com, credentials: {canary: 5}, " +
		"default_group_email_domain: example.com}]"
	processtest.Must(t, os.WriteFile(filepath.Join(l.Dir, "last.yaml"), []byte(last), 0o600))
	l.RunCommand(t, "apply", "-f", "last.yaml", "--as", "initial", "--yes")
	output, err := l.Command(t.Context(), "audit", "list", "--output", "jsonl").Output()
	processtest.Must(t, errors.Join(err, os.WriteFile(filepath.Join(l.Dir, "lines.jsonl"), output, 0o600)))
	l.RunCommand(t, "audit", "verify", "lines.jsonl")
	l.expectFound(t, manipulation{kind: "older copy", pk: l.history(t).last}, older)
	l.expectNoFalseAlarm(t)
}

// expectNoFalseAlarm rotates keys, copies the database there and back, restores a backup of the copy, and expects that
// nothing differs from the lines.
func (l *ledger) expectNoFalseAlarm(t *testing.T) {
	t.Helper()
	keyset := l.Keyset()
	for _, arguments := range [][]string{
		{"key", "rotate", "--reseal"},
		{"PROVIDERD_FROM=" + cmp.Or(l.URL, "sqlite:data/providerd.db"), "copy", "--to", "sqlite:copy.db", "--keyset", keyset},
		{"copy", "--from", "sqlite:copy.db", "--to", "sqlite:back.db", "--keyset", keyset},
		{"backup", "backup.db", "--database", "sqlite:back.db", "--keyset", keyset},
		{"restore", "backup.db", "--database", "sqlite:restored.db", "--keyset", keyset},
	} {
		l.RunCommand(t, arguments...)
	}
	for _, database := range [][]string{
		nil, {"--database", "sqlite:copy.db"}, {"--database", "sqlite:back.db"}, {"--database", "sqlite:restored.db"},
	} {
		l.RunCommand(t, append([]string{"audit", "verify", "lines.jsonl", "--keyset", keyset}, database...)...)
	}
}

// line is a line of "audit list --output jsonl".
type line struct {
	ID      int64  `json:"id"`
	At      string `json:"at"`
	Event   string `json:"event"`
	Subject int64  `json:"subject"`
	Kind    string `json:"kind"`
	Digest  string `json:"digest"`
}

// linesOf parses lines. A kill can cut one, after which the next follows at once.
func linesOf(t *testing.T, text string) (lines []line) {
	t.Helper()
	for one := range strings.Lines(text) {
		var parsed line
		if err := json.Unmarshal([]byte(one[max(0, strings.LastIndex(one, `{"id":`)):]), &parsed); err != nil {
			t.Fatal(err, one)
		}
		lines = append(lines, parsed)
	}
	return lines
}

// history has pks.
type history struct {
	// live has the stored records by kind, and updated the updated ones among them.
	live    map[string][]int64
	updated []int64
	deleted []int64
	last    int64
}

// history returns the pks in the lines.
func (l *ledger) history(t *testing.T) history {
	t.Helper()
	h := history{live: map[string][]int64{}}
	kinds, changed := map[int64]string{}, map[int64]bool{}
	text, err := os.ReadFile(filepath.Join(l.Dir, "lines.jsonl"))
	processtest.Must(t, err)
	for _, line := range linesOf(t, string(text)) {
		l.lastEvent = line.ID
		switch line.Event {
		case "provider created":
			kinds[line.Subject] = line.Kind
			h.last = max(h.last, line.Subject)
		case "provider updated":
			changed[line.Subject] = true
		case "provider deleted":
			delete(kinds, line.Subject)
			delete(changed, line.Subject)
			h.deleted = append(h.deleted, line.Subject)
		}
	}
	for _, pk := range slices.Sorted(maps.Keys(kinds)) {
		h.live[kinds[pk]] = append(h.live[kinds[pk]], pk)
	}
	h.updated = slices.Sorted(maps.Keys(changed))
	return h
}

func ledgerInSQLite(t *testing.T) *ledger {
	t.Helper()
	l := &ledger{
		site: startSite(t, "", 1), setSequence: "UPDATE sqlite_sequence SET seq = %d WHERE name = 'providers'", longAgo: "0",
		disable: "DROP TRIGGER providers_created", notList: "'x'", blob: "BLOB",
	}
	l.copy = func(t *testing.T) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "providerd.db")
		providerdtest.Run(t, "cp", filepath.Join(l.Dir, "data", "providerd.db"), path)
		return "sqlite:" + path
	}
	l.keep(t)
	return l
}

func ledgerInPostgres(t *testing.T) *ledger {
	t.Helper()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	l := &ledger{
		site: startSite(t, url, 2), setSequence: "SELECT setval('providers_pk_seq', %d)", longAgo: "'2020-01-01 00:00:00+00:00'",
		disable: "ALTER TABLE providers DISABLE TRIGGER providers_created", notList: `'"x"'`, blob: "bytea",
	}
	name := regexp.MustCompile(`/(\w+)(\?|$)`).FindStringSubmatch(url)[1]
	l.copy = func(t *testing.T) string {
		t.Helper()
		return cluster.CopyDatabase(t, name)
	}
	l.keep(t)
	return l
}
