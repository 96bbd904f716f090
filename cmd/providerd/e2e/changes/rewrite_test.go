//go:build slow

package changes_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
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

// TestRewrittenRecordsAreFound changes a copy of a database by SQL, and expects that verify identifies the record.
func TestRewrittenRecordsAreFound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		l := newLedger(s)
		l.keep(t)
		random := rand.New(rand.NewPCG(31, 31))
		rounds := processtest.ProofSize(t, "faults", 8)
		kinds := map[string]int{}
		for range rounds {
			m := l.randomManipulation(random)
			kinds[m.kind]++
			copied := l.copy(t)
			if err := providerdtest.Execute(t.Context(), copied, m.statements...); err != nil {
				kinds["refused by the schema"]++
				continue
			}
			l.expectFound(t, m, copied)
		}
		t.Logf("%d manipulations found or refused: %v", rounds, kinds)
		refused := kinds["refused by the schema"]
		processtest.Expect(t, rounds <= 20 || refused <= rounds/3, "%d of %d manipulations were refused", refused, rounds)
	})
}

// expectFound expects that verify finds the manipulation of a copy, or that its event is printed.
func (l *ledger) expectFound(t *testing.T, m manipulation, database string) {
	t.Helper()
	command, status, pattern := []string{"audit", "verify", "lines.jsonl"}, providerdtest.ExitDiffers, `(?m)^%d  `
	if m.hasEvent {
		command, status = []string{"audit", "list", "--after", fmt.Sprint(l.lastEventID)}, 0
		pattern = ` provider created +%d `
	}
	environment := []string{"PROVIDERD_DATABASE=" + database, "PROVIDERD_KEYSET=" + l.Keyset()}
	audit := l.Command(t.Context(), append(environment, command...)...)
	output, _ := audit.CombinedOutput()
	if audit.ProcessState.ExitCode() != status || !regexp.MustCompile(fmt.Sprintf(pattern, m.pk)).Match(output) {
		t.Errorf("%s of provider %d was not found: %v, %s\n%s", m.kind, m.pk, audit.ProcessState, output,
			strings.Join(m.statements, "\n"))
	}
}

// ledger is a database with a history, and what was kept of it.
type ledger struct {
	*site
	// setSequence is the format of a statement that sets the last pk, and longAgo is a time.
	setSequence, longAgo string
	// disable disables the trigger of creates, notList makes a list something else, and blob is the type of bytes.
	disable, notList, blob string
	// live has the pks of the stored records by kind, and updated those of the updated ones among them.
	live                map[string][]int64
	updated, deleted    []int64
	lastPK, lastEventID int64
}

func newLedger(s *site) *ledger {
	if s.URL == "" {
		return &ledger{
			site: s, setSequence: "DELETE FROM events WHERE subject > %d AND event = 'provider created'", longAgo: "0",
			disable: "DROP TRIGGER providers_created", notList: "'x'", blob: "BLOB",
		}
	}
	return &ledger{
		site: s, setSequence: "SELECT setval('providers_pk_seq', %d)", longAgo: "'2020-01-01 00:00:00+00:00'",
		disable: "ALTER TABLE providers DISABLE TRIGGER providers_created", notList: `'"x"'`, blob: "bytea",
	}
}

// copy returns the URL of a copy of the database.
func (l *ledger) copy(t *testing.T) string {
	t.Helper()
	if l.URL == "" {
		path := filepath.Join(t.TempDir(), "providerd.db")
		providerdtest.Run(t, "cp", filepath.Join(l.Dir, "data", "providerd.db"), path)
		return "sqlite:" + path
	}
	server := processtest.Try(url.Parse(l.URL)).Must(t)
	name := server.Path[1:]
	server.Path = "/postgres"
	return postgrestest.CreateDatabase(t, server.String(), name)
}

// keep makes a history of creates, updates, renames and deletions, and keeps its lines, which no older copy has.
func (l *ledger) keep(t *testing.T) {
	m := newModel(31)
	for range 3 {
		m.change(40)
		m.write(t, l.Dir)
		l.RunCommand(t, "apply", "-f", "model.yaml", "--as", "initial", "--yes", "--prune=5000")
	}
	server, client := l.Replicas[0], contracttest.Client(t)
	for i := range 5 {
		body := fmt.Sprintf(`{"name": "Directory %d", "delegated_subject": "admin@example.com",
			"credentials": {"canary": %d}, "default_group_email_domain": "example.com"}`, i, i)
		server.ExpectPost(t, client, http.StatusCreated, providerdtest.DirectoryPath, body, "")
	}
	l.Stop(t)
	older := l.copy(t)
	const last = "workspace_directory: [{name: Last, delegated_subject: admin@example.com, credentials: {canary: 5}, " +
		"default_group_email_domain: example.com}]"
	processtest.Must(t, os.WriteFile(filepath.Join(l.Dir, "last.yaml"), []byte(last), 0o600))
	l.RunCommand(t, "apply", "-f", "last.yaml", "--as", "initial", "--yes")
	output, err := l.Command(t.Context(), "audit", "list", "--output", "jsonl").Output()
	processtest.Must(t, errors.Join(err, os.WriteFile(filepath.Join(l.Dir, "lines.jsonl"), output, 0o600)))
	l.read(t, string(output))
	l.RunCommand(t, "audit", "verify", "lines.jsonl")
	l.expectFound(t, manipulation{kind: "older copy", pk: l.lastPK}, older)
	l.expectNoFalseAlarm(t)
}

// expectNoFalseAlarm rotates keys, copies there and back, and restores a backup. Nothing may differ from the lines.
func (l *ledger) expectNoFalseAlarm(t *testing.T) {
	l.RunCommand(t, "key", "rotate")
	l.RunCommand(t, "key", "reseal")
	for _, line := range []string{
		"PROVIDERD_FROM=" + cmp.Or(l.URL, "sqlite:data/providerd.db") + " copy --to sqlite:copy.db",
		"copy --from sqlite:copy.db --to sqlite:back.db",
		"backup backup.db --database sqlite:back.db",
		"restore backup.db --database sqlite:restored.db",
		"audit verify lines.jsonl",
		"audit verify lines.jsonl --database sqlite:copy.db",
		"audit verify lines.jsonl --database sqlite:back.db",
		"audit verify lines.jsonl --database sqlite:restored.db",
	} {
		l.RunCommand(t, append(strings.Fields(line), "--keyset", l.Keyset())...)
	}
}

func (l *ledger) read(t *testing.T, lines string) {
	kinds, changed := map[int64]string{}, map[int64]bool{}
	for _, line := range linesOf(t, lines) {
		l.lastEventID = line.ID
		switch line.Event {
		case "provider created":
			kinds[line.Subject] = line.Kind
			l.lastPK = max(l.lastPK, line.Subject)
		case "provider updated":
			changed[line.Subject] = true
		case "provider deleted":
			delete(kinds, line.Subject)
			delete(changed, line.Subject)
			l.deleted = append(l.deleted, line.Subject)
		}
	}
	l.live = map[string][]int64{}
	for _, pk := range slices.Sorted(maps.Keys(kinds)) {
		l.live[kinds[pk]] = append(l.live[kinds[pk]], pk)
	}
	l.updated = slices.Sorted(maps.Keys(changed))
}
