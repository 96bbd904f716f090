//go:build slow

package changes_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/postgres/postgrestest"
)

const (
	// defaultRewrites is the number of manipulations; "make faults" sets more.
	defaultRewrites = 30
	// records is the number of entries of the file.
	records = 40
)

// ledger is a database with a history, and what was kept of it.
type ledger struct {
	*site
	// copy returns the environment of a copy of the database, and a function that runs a statement in it.
	copy func(t *testing.T) (environment []string, exec func(t *testing.T, statements ...string))
}

// TestRewrittenRecordsAreFound changes a copy of a database by SQL, without the program, and expects that the record is
// named. Changes by the program are no findings.
func TestRewrittenRecordsAreFound(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) ledger{"sqlite": ledgerInSQLite, "postgres": ledgerInPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t)
			live, updated := l.pks(t)
			random := rand.New(rand.NewPCG(31, 31))
			rounds := providerdtest.EnvCount(t, "PROVIDERD_KILL_ROUNDS", defaultRewrites)
			kinds := map[string]int{}
			for range rounds {
				m := manipulations(random, live, updated)
				kinds[m.kind]++
				environment, exec := l.copy(t)
				exec(t, m.statements...)
				l.expectFound(t, m, environment)
			}
			t.Logf("%d manipulations found: %v", rounds, kinds)
		})
	}
}

// expectFound expects that the manipulation of a copy is found.
func (l ledger) expectFound(t *testing.T, m manipulation, environment []string) {
	t.Helper()
	const differs = 3
	lines := l.command(t, "audit", "verify", "--against", filepath.Join(l.dir, "lines.jsonl"))
	lines.Env = append(lines.Env, environment...)
	output, _ := lines.CombinedOutput()
	if lines.ProcessState.ExitCode() != differs || !regexp.MustCompile(fmt.Sprintf(`(?m)^%d  `, m.pk)).Match(output) {
		t.Errorf("%s of provider %d was not found: status %d, %s\n%s", m.kind, m.pk, lines.ProcessState.ExitCode(), output,
			strings.Join(m.statements, "\n"))
	}
	heads := l.command(t, "audit", "verify", "--against", filepath.Join(l.dir, "heads.txt"))
	heads.Env = append(heads.Env, environment...)
	output, _ = heads.CombinedOutput()
	if heads.ProcessState.ExitCode() != differs {
		t.Errorf("%s of provider %d: status %d for heads, %s", m.kind, m.pk, heads.ProcessState.ExitCode(), output)
	}
}

// keep makes a history of creates, updates, renames and deletions, and keeps the lines and heads.
func (l ledger) keep(t *testing.T) {
	t.Helper()
	m := newModel(31)
	for range 3 {
		m.change(records)
		m.write(t, l.dir)
		l.run(t, "apply", "-f", "model.yaml", "--as", l.caller, "--yes", "--prune=10000")
	}
	server, client := l.servers[0], contracttest.Client(t)
	for i := range 5 {
		body := fmt.Sprintf(`{"name": "Directory %d", "delegated_subject": "admin@example.com",
			"credentials": {"canary": %d}, "default_group_email_domain": "example.com"}`, i, i)
		if status, text, err := server.Post(client, "/api/v3/providers/workspace_directory/", body); status != 201 {
			t.Fatal(status, text, err)
		}
	}
	for name, arguments := range map[string][]string{
		"lines.jsonl": {"audit", "--output", "jsonl"}, "heads.txt": {"audit", "head"},
	} {
		output, err := l.command(t, arguments...).Output()
		if err := errors.Join(err, os.WriteFile(filepath.Join(l.dir, name), output, 0o600)); err != nil {
			t.Fatal(err)
		}
		l.run(t, "audit", "verify", "--against", name)
	}
	for _, each := range l.servers {
		each.MustStop(t)
	}
	l.expectSameHeads(t)
}

// expectSameHeads rotates, reseals and retires keys, copies the database and backs the copy up, and expects the same
// heads of all.
func (l ledger) expectSameHeads(t *testing.T) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join(l.dir, "heads.txt"))
	if err != nil {
		t.Fatal(err)
	}
	keyset := filepath.Join(l.dir, "data", "keyset.json")
	l.run(t, "key", "rotate")
	if len(l.environment) > 0 {
		keyset = filepath.Join(l.dir, "keyset.json")
		l.environment = append(l.environment, strings.Replace(l.environment[0], "_DATABASE=", "_FROM=", 1))
		l.run(t, "key", "promote")
	} else {
		l.environment = []string{"PROVIDERD_FROM=sqlite:data/providerd.db"}
	}
	for _, arguments := range [][]string{
		{"key", "reseal"},
		{"key", "retire"},
		{"copy", "--to", "sqlite:copy.db", "--keyset", keyset},
		{"copy", "--from", "sqlite:copy.db", "--to", "sqlite:back.db", "--keyset", keyset},
		{"backup", "backup.db", "--database", "sqlite:back.db", "--keyset", keyset},
		{"restore", "backup.db", "--database", "sqlite:restored.db", "--keyset", keyset},
	} {
		l.run(t, arguments...)
	}
	for _, database := range [][]string{
		nil, {"--database", "sqlite:copy.db"}, {"--database", "sqlite:back.db"}, {"--database", "sqlite:restored.db"},
	} {
		database = append(database, "--keyset", keyset)
		heads, err := l.command(t, append([]string{"audit", "head"}, database...)...).Output()
		if err != nil || string(heads) != string(want) {
			t.Errorf("%v has the heads %s, %v, want %s", database, heads, err, want)
		}
		l.run(t, append([]string{"audit", "verify", "--against", "lines.jsonl"}, database...)...)
	}
}

// line is a line of "audit --output jsonl".
type line struct {
	At     string   `json:"at"`
	Event  string   `json:"event"`
	ID     int64    `json:"id"`
	Kind   string   `json:"kind"`
	Fields []string `json:"fields"`
	User   string   `json:"user"`
	Leaf   []byte   `json:"leaf"`
	Cursor string   `json:"cursor"`
}

// linesOf parses lines. A kill can cut one, after which the next follows at once.
func linesOf(t *testing.T, text string) (lines []line) {
	t.Helper()
	for one := range strings.Lines(text) {
		var parsed line
		if err := json.Unmarshal([]byte(one[max(0, strings.LastIndex(one, `{"at":`)):]), &parsed); err != nil {
			t.Fatal(err, one)
		}
		lines = append(lines, parsed)
	}
	return lines
}

// pks returns the pks of the stored records by kind, and those of them that were updated.
func (l ledger) pks(t *testing.T) (live map[string][]int64, updated []int64) {
	t.Helper()
	kinds, changed := map[int64]string{}, map[int64]bool{}
	text, err := os.ReadFile(filepath.Join(l.dir, "lines.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range linesOf(t, string(text)) {
		switch line.Event {
		case "provider created":
			kinds[line.ID] = line.Kind
		case "provider updated":
			changed[line.ID] = true
		case "provider deleted":
			delete(kinds, line.ID)
			delete(changed, line.ID)
		}
	}
	live = map[string][]int64{}
	for _, pk := range slices.Sorted(maps.Keys(kinds)) {
		live[kinds[pk]] = append(live[kinds[pk]], pk)
	}
	return live, slices.Sorted(maps.Keys(changed))
}

func ledgerInSQLite(t *testing.T) ledger {
	t.Helper()
	l := ledger{site: overSQLite(t)}
	l.keep(t)
	l.copy = func(t *testing.T) ([]string, func(*testing.T, ...string)) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "providerd.db")
		if err := providerdtest.CopyFile(filepath.Join(l.dir, "data", "providerd.db"), path); err != nil {
			t.Fatal(err)
		}
		return []string{"PROVIDERD_DATABASE=sqlite:" + path, "PROVIDERD_KEYSET=" + filepath.Join(l.dir, "data", "keyset.json")},
			func(t *testing.T, statements ...string) {
				t.Helper()
				db, err := sql.Open("sqlite3", path)
				if err == nil {
					err = errors.Join(execAll(t.Context(), db, statements), db.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
	}
	return l
}

func execAll(ctx context.Context, db *sql.DB, statements []string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func ledgerInPostgres(t *testing.T) ledger {
	t.Helper()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	fleet := providerdtest.StartFleet(t, os.Args[0], url, 2)
	l := ledger{site: &site{
		dir: fleet.Dir, caller: "ci", servers: fleet.Replicas,
		environment: []string{"PROVIDERD_DATABASE=" + url, "PROVIDERD_KEYSET=" + filepath.Join(fleet.Dir, "keyset.json")},
	}}
	l.keep(t)
	original := regexp.MustCompile(`/(\w+)(\?|$)`).FindStringSubmatch(url)[1]
	number := 0
	l.copy = func(t *testing.T) ([]string, func(*testing.T, ...string)) {
		t.Helper()
		number++
		name := fmt.Sprintf("copy%d", number)
		cluster.Exec(t, "postgres", fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, original))
		return []string{"PROVIDERD_DATABASE=" + strings.Replace(url, original, name, 1)},
			func(t *testing.T, statements ...string) { t.Helper(); cluster.Exec(t, name, statements...) }
	}
	return l
}

// manipulation changes the record with a pk by SQL.
type manipulation struct {
	kind       string
	pk         int64
	statements []string
}

// columns are the columns of records that can be changed, with another value.
func columns() map[string]map[string]string {
	const flow = "'3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e99'"
	const list = `'["3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e99"]'`
	longer := func(names ...string) map[string]string {
		values := map[string]string{}
		for _, name := range names {
			values[name] = "coalesce(" + name + ", '') || 'x'"
		}
		return values
	}
	all := map[string]map[string]string{
		"providers": longer("name", "created_by", "request_id", "remote_address", "idempotency_key"),
		"oauth2_providers": longer("client_type", "client_id", "access_code_validity", "access_token_validity",
			"refresh_token_validity", "redirect_uris", "sub_mode", "issuer_mode"),
		"workspace_directory_providers": longer("delegated_subject", "scopes", "user_delete_action", "group_delete_action",
			"default_group_email_domain"),
	}
	all["providers"]["created_at"] = "'2020-01-01 00:00:00+00:00'"
	all["providers"]["fingerprint"] = "(SELECT client_secret FROM oauth2_providers LIMIT 1)"
	for _, name := range []string{"authentication_flow", "authorization_flow", "signing_key"} {
		all["oauth2_providers"][name] = flow
	}
	for _, name := range []string{"property_mappings", "jwks_sources"} {
		all["oauth2_providers"][name] = list
	}
	all["oauth2_providers"]["include_claims_in_id_token"] = "NOT include_claims_in_id_token"
	directory := all["workspace_directory_providers"]
	directory["filter_group"], directory["property_mappings"], directory["property_mappings_group"] = flow, list, list
	directory["exclude_users_service_account"] = "NOT exclude_users_service_account"
	return all
}

// manipulations returns a random manipulation.
func manipulations(random *rand.Rand, live map[string][]int64, updated []int64) manipulation {
	tables := map[string]string{"oauth2": "oauth2_providers", "workspace_directory": "workspace_directory_providers"}
	kind := []string{"oauth2", "workspace_directory"}[random.IntN(2)]
	pks := live[kind]
	pk, other := pks[random.IntN(len(pks))], pks[random.IntN(len(pks))]
	for other == pk {
		other = pks[random.IntN(len(pks))]
	}
	deletion := []string{
		fmt.Sprintf("DELETE FROM %s WHERE pk = %d", tables[kind], pk), fmt.Sprintf("DELETE FROM providers WHERE pk = %d", pk),
	}
	switch random.IntN(10) {
	case 0:
		column := map[string]string{"oauth2": "client_secret", "workspace_directory": "credentials"}[kind]
		return manipulation{"swapped secret", pk, []string{fmt.Sprintf("UPDATE %s SET %s = (SELECT %s FROM %s AS o WHERE pk = %d) WHERE pk = %d",
			tables[kind], column, column, tables[kind], other, pk)}}
	case 1:
		return manipulation{"deleted record", pk, deletion}
	case 2:
		deletion = append(deletion, fmt.Sprintf("INSERT INTO deleted_providers SELECT pk, kind, 'x', created_at, created_by, "+
			"request_id, remote_address, '', created_at FROM providers WHERE pk = %d", pk))
		slices.Reverse(deletion)
		return manipulation{"deletion with a forged event", pk, []string{
			deletion[0], deletion[2], deletion[1],
			fmt.Sprintf("INSERT INTO provider_changes (at, pk, change, fields, os_user, leaf_before) SELECT at, %d, 'deleted', "+
				"'[]', os_user, leaf_before FROM provider_changes WHERE leaf_before IS NOT NULL AND pk <> %d LIMIT 1", pk, pk),
		}}
	case 3:
		changed := updated[random.IntN(len(updated))]
		return manipulation{"removed event", changed, []string{
			fmt.Sprintf("DELETE FROM provider_changes WHERE change = 'updated' AND pk = %d", changed),
		}}
	case 4:
		changed := updated[random.IntN(len(updated))]
		value := []string{
			"os_user = 'x'", "at = '2020-01-01 00:00:00+00:00'", `fields = '["x"]'`,
			"leaf_before = (SELECT leaf_before FROM provider_changes WHERE pk <> c.pk AND leaf_before IS NOT NULL LIMIT 1)",
		}[random.IntN(4)]
		return manipulation{"changed event", changed, []string{
			fmt.Sprintf("UPDATE provider_changes AS c SET %s WHERE change = 'updated' AND pk = %d", value, changed),
		}}
	case 5:
		// A gap between the first and the last pk gets a record, as if a pk were given twice.
		return manipulation{"record with a pk given twice", pk, append(deletion,
			fmt.Sprintf("INSERT INTO providers (pk, kind, name, created_at, created_by, request_id, remote_address) "+
				"SELECT %d, kind, name, created_at, created_by, request_id, remote_address FROM providers WHERE pk = %d", pk, other),
			insertCopy(tables[kind], pk, other))}
	default:
		table := []string{"providers", tables[kind]}[random.IntN(2)]
		values := columns()[table]
		names := slices.Sorted(maps.Keys(values))
		name := names[random.IntN(len(names))]
		return manipulation{"changed " + name, pk, []string{
			fmt.Sprintf("UPDATE %s SET %s = %s WHERE pk = %d", table, name, values[name], pk),
		}}
	}
}

// insertCopy returns a statement that inserts a copy of the settings of a provider.
func insertCopy(table string, pk, of int64) string {
	if table == "oauth2_providers" {
		return fmt.Sprintf(`INSERT INTO oauth2_providers SELECT %d, authentication_flow, authorization_flow, property_mappings,
			client_type, client_id || 'x', client_secret, access_code_validity, access_token_validity, refresh_token_validity,
			include_claims_in_id_token, signing_key, redirect_uris, sub_mode, issuer_mode, jwks_sources
			FROM oauth2_providers WHERE pk = %d`, pk, of)
	}
	return fmt.Sprintf(`INSERT INTO workspace_directory_providers SELECT %d, property_mappings, property_mappings_group,
		delegated_subject, credentials, scopes, exclude_users_service_account, filter_group, user_delete_action,
		group_delete_action, default_group_email_domain FROM workspace_directory_providers WHERE pk = %d`, pk, of)
}
