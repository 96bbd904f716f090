package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/server/contracttest"
)

// A record whose secret was altered is named, and the others are listed or advised on all the same.
func TestDamagedRecordsArePassedOver(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server, err := startProcess(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	client := contracttest.Client(t)
	for range 3 {
		status, answer, err := server.post(client, folder, oauth2Path,
			`{"name":"x","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01","sub_mode":"user_upn"}`)
		if err != nil || status != 201 {
			t.Fatal(status, answer, err)
		}
	}
	if err := server.stop(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", filepath.Join(folder, "data", "providerd.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), "UPDATE oauth2_providers SET client_secret = 'rubbish' WHERE pk = 2")
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for line, rows := range map[string]int{
		"list": 2, "list --output json": 2, "advise": 2, "advise --output json": 2, "advise 2": 0,
	} {
		command := newCommand(t.Context(), folder, append([]string{"provider"}, strings.Fields(line)...)...)
		var talk strings.Builder
		command.Stderr = &talk
		listed, err := command.Output()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitFailed ||
			!strings.Contains(talk.String(), "provider 2: client_secret: sealed secret is damaged") {
			t.Errorf("%s: %v: %s", line, err, talk.String())
		}
		if !strings.HasSuffix(line, "json") {
			if lines := strings.Count(string(listed), "\n"); lines != 1+rows {
				t.Errorf("%s: the table is %s", line, listed)
			}
			continue
		}
		var records []struct{ PK int }
		if err := json.Unmarshal(listed, &records); err != nil || len(records) != rows || records[1].PK != 3 {
			t.Errorf("%s: %v: %s", line, err, listed)
		}
	}
}
