//go:build slow

// Package upgrade_test upgrades databases from this build to a newer program, which has a further migration: with
// records that are older than a field, and under load, with replicas of both that are replaced one by one, and back. It
// also moves databases to other PostgreSQL servers, as the manual says (replication_test.go), and in wrong ways.
package upgrade_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

func TestMain(m *testing.M) { providerdtest.Main(m) }

// furtherMigration returns the files of a migration with a statement, by path.
func furtherMigration(statement string) map[string]string {
	files := map[string]string{}
	for database, version := range map[string]string{"sqlite": "randomblob(16)", "postgres": "uuid_send(gen_random_uuid())"} {
		files["store/"+database+"/migrations/99999_later.sql"] = "-- +goose Up\n" + statement + `;
ALTER TABLE providers ADD COLUMN later text CHECK (kind = 'oauth2' OR later IS NULL);
UPDATE keyset SET version = ` + version + ";\n"
	}
	return files
}

// build returns a program of this tree with other files, by path.
func build(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, replaced := t.TempDir(), map[string]string{}
	for path, content := range files {
		file := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		processtest.Must(t, os.WriteFile(file, []byte(content), 0o600))
		replaced[providerdtest.Path(t, path)] = file
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	file := filepath.Join(dir, "overlay.json")
	processtest.Must(t, err, os.WriteFile(file, overlay, 0o600))
	newer := providerdtest.Build(t, "-overlay", file)
	versions := processtest.Run(t, as(newer, providerdtest.Command(t.Context(), "", "version")))
	processtest.Contains(t, versions, "schema version 99999 (SQLite), 99999 (PostgreSQL)")
	return newer
}

func as(program string, command *exec.Cmd) *exec.Cmd {
	command.Path = program
	return command
}

// buildWithField returns a program with a further OAuth2 field, "later", added as the README of the server says.
func buildWithField(t *testing.T) string {
	files := furtherMigration("SELECT 1")
	files["store/postgres/migrations/99999_later.sql"] += "UPDATE schema_support SET oldest_level = 99999;\n"
	insert := func(path, line, before string) {
		text, isChanged := files[path]
		if !isChanged {
			text = providerdtest.ReadFile(t, path)
		}
		processtest.Require(t, strings.Contains(text, before), "%s does not contain %q", path, before)
		files[path] = strings.ReplaceAll(text, before, line+before)
	}
	insert("openapi.yaml", "        later: {type: string, pattern: '^[^\\x00]*$'}\n", "        issuer_mode:\n")
	insert("openapi.yaml", "later, ", "issuer_mode, jwks_sources")
	insert("openapi.yaml", "later: always, ", "issuer_mode: per_provider, ")
	insert("openapi.yaml", "        later: always\n", "        issuer_mode: per_provider\n")
	insert("store/records/records.go", "\tLater string\n", "\tIssuerMode ")
	insert("store/records/columns.go", "\tvisit(v, \"later\", &s.Later, \"always\")\n", "\tvisit(v, \"issuer_mode\", ")
	insert("server/contract/kinds.go", "Later: textOr(request.Later, byDefault.Later),\n", "\t\tIssuerMode:             textOr(")
	insert("server/contract/kinds.go", "Later: record.Later,\n", "\t\tIssuerMode:                         model.")
	dir := t.TempDir()
	for _, name := range []string{"model", "api", "client"} {
		document, generated := filepath.Join(dir, "openapi.yaml"), filepath.Join(dir, name)
		processtest.Must(t, os.WriteFile(document, []byte(files["openapi.yaml"]), 0o600))
		command := exec.CommandContext(t.Context(), "go", "tool", "oapi-codegen", "-config", "gen/"+name+"/oapi-codegen.yaml",
			"-o", generated, document)
		command.Dir = providerdtest.Path(t, ".")
		processtest.Run(t, command)
		files["gen/"+name+"/"+name+".gen.go"] = string(processtest.Try(os.ReadFile(generated)).Must(t))
	}
	files["gen/contract/openapi.gen.yaml"] = files["openapi.yaml"]
	return build(t, files)
}

// TestRecordsBeforeAField writes records, events, lines of the audit, keys and tokens, adds a field while the program
// still serves, and reads, verifies, retries, exports, updates, copies and backs up what is older than the field.
func TestRecordsBeforeAField(t *testing.T) {
	newer := buildWithField(t)
	for database, url := range map[string]string{"SQLite": "", "PostgreSQL": postgrestest.NewCluster(t).CreateDatabase(t)} {
		t.Run(database, func(t *testing.T) { testRecordsBeforeAField(t, newer, url) })
	}
}

func testRecordsBeforeAField(t *testing.T, newer, url string) {
	f := providerdtest.StartFleet(t, url, 1)
	f.Client = &http.Client{} // The client of tests refuses fields that the contract of this tree does not have.
	const required, always = `"authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"`, `{"name": "a", "later": "always", `
	post := func(want int, path, body, key string) (record map[string]any) {
		t.Helper()
		processtest.Must(t, json.Unmarshal([]byte(f.Replica(0).ExpectPost(t, f.Client, want, path, body, key)), &record))
		return record
	}
	older := []struct {
		path, body, key string
		record          map[string]any
	}{
		{providerdtest.OAuth2Path, `{"name": "a", ` + required + `}`, "a", nil},
		{providerdtest.OAuth2Path, `{"name": "b", "client_type": "public", "sub_mode": "user_id", ` + required + `}`, "b", nil},
		{providerdtest.DirectoryPath, `{"name": "c", "delegated_subject": "a@example.com", "credentials": {}, "default_group_email_domain": "example.com"}`, "c", nil},
	}
	for i, create := range older {
		older[i].record = post(http.StatusCreated, create.path, create.body, create.key)
	}
	f.RunCommand(t, "key", "rotate")
	f.RunCommand(t, "key", "reseal")
	// The server loads the new keys, so that it does not load any after the migration unless that changes them.
	post(http.StatusCreated, providerdtest.OAuth2Path, `{"name": "changed", `+required+`}`, "changed")
	f.RunCommand(t, "provider", "update", "4", "sub_mode=user_upn", "--yes")
	f.RunCommand(t, "token", "create", "--name", "other", "--allow", "all")
	keep := func(lines string) {
		processtest.Must(t, os.WriteFile(filepath.Join(f.Dir, "lines"), []byte(lines), 0o600))
	}
	keep(f.RunCommand(t, "audit", "list", "--output", "jsonl"))
	run := func(line string) string {
		t.Helper()
		return processtest.Run(t, as(newer, f.Command(t.Context(), append(strings.Fields(line), "--keyset", f.Keyset())...)))
	}

	run("migrate")
	for _, key := range []string{"", "a", "another"} {
		post(http.StatusServiceUnavailable, older[0].path, older[0].body, key)
	}
	run("audit verify lines")
	providerdtest.ExpectExit(t, f.Command(t.Context(), "audit", "list"), providerdtest.ExitFailed, "use a newer providerd")

	f.Replica(0).Stop(t)
	f.Program = newer
	f.Start(t, 0)
	for _, create := range older {
		if create.path == providerdtest.OAuth2Path {
			create.record["later"] = "always"
		}
		processtest.Equal(t, post(http.StatusCreated, create.path, create.body, create.key), create.record, "retry")
	}
	post(http.StatusCreated, providerdtest.OAuth2Path, always+required+`}`, "a")
	post(http.StatusUnprocessableEntity, providerdtest.OAuth2Path, strings.Replace(always, "always", "once", 1)+required+`}`, "a")
	post(http.StatusCreated, providerdtest.OAuth2Path, `{"name": "new", "later": "once", `+required+`}`, "new")
	run("provider update 2 later=always redirect_uris=https://app.example.com/callback --yes")
	run("audit verify lines")
	keep(run("audit list --output jsonl"))

	if exported := run("provider export"); strings.Count(exported, "later: always") != 3 || strings.Count(exported, "later: once") != 1 {
		t.Errorf("exported as %s", exported)
	}
	processtest.Contains(t, run("provider update 1 later=always --yes"), "already has these values")
	run("key rotate")
	run("key reseal")
	run("PROVIDERD_FROM=" + cmp.Or(url, "sqlite:data/providerd.db") + " copy --live --to sqlite:copy.db")
	run("backup copy.backup --database sqlite:copy.db")
	for _, database := range []string{"", " --database sqlite:copy.db", " --database sqlite:copy.backup"} {
		run("audit verify lines" + database)
	}
}
