package commands_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
)

// Commands report records whose secret or list was altered, and still list, export or advise on the others. The same
// is true of tokens.
func TestCommandsSkipDamagedRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := providerdtest.Serve(t, dir)
	client := contracttest.Client(t)
	for range 4 {
		status, answer, err := server.Post(client, providerdtest.OAuth2Path,
			`{"name":"x","authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01","sub_mode":"user_upn"}`)
		if err != nil || status != 201 {
			t.Fatal(status, answer, err)
		}
	}
	server.MustStop(t)
	err := execute(t.Context(), filepath.Join(dir, "data", "providerd.db"), `UPDATE oauth2_providers SET client_secret = 'rubbish' WHERE pk = 2;
		UPDATE oauth2_providers SET property_mappings = '{bad' WHERE pk = 4; UPDATE tokens SET operations = '{bad'`)
	if err != nil {
		t.Fatal(err)
	}
	const secret, row = "provider 2: client_secret: sealed secret is damaged", "provider 4: its row is damaged: "
	for line, test := range map[string]struct {
		lines int
		says  []string
	}{
		"provider list":     {3, []string{secret, row}},
		"provider advise":   {3, []string{secret, row}},
		"provider export":   {-1, []string{secret, row, "2 providers exported"}},
		"provider advise 2": {1, []string{secret}},
		"provider advise 4": {1, []string{row}},
		"provider show 4":   {0, []string{row, "correct the value or restore a backup"}},
		"token list":        {1, []string{"token 1: its row is damaged: "}},
	} {
		listed, talk := runDamaged(t, dir, line)
		for _, says := range test.says {
			if !strings.Contains(talk, says) {
				t.Errorf("%s does not print %q: %s", line, says, talk)
			}
		}
		if lines := strings.Count(listed, "\n"); test.lines >= 0 && lines != test.lines {
			t.Errorf("%s: the table is %s", line, listed)
		}
	}
	for _, line := range []string{"provider list --output json", "provider advise --output json"} {
		listed, _ := runDamaged(t, dir, line)
		var records []struct{ PK int }
		if err := json.Unmarshal([]byte(listed), &records); err != nil || len(records) != 2 || records[1].PK != 3 {
			t.Errorf("%s: %v: %s", line, err, listed)
		}
	}
	if said, err := providerdtest.Command(t.Context(), dir, "token", "revoke", "1").CombinedOutput(); err != nil {
		t.Errorf("revoke a damaged token: %v: %s", err, said)
	}
	if looked, talk := runDamaged(t, dir, "doctor"); strings.Contains(looked+talk, "is not a list") {
		t.Errorf("the doctor with a damaged token: %s%s", looked, talk)
	}
}

// runDamaged runs a command that must fail because of damage.
func runDamaged(t *testing.T, dir, line string) (listed, talk string) {
	t.Helper()
	command := providerdtest.Command(t.Context(), dir, strings.Fields(line)...)
	var said strings.Builder
	command.Stderr = &said
	text, err := command.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != providerdtest.ExitFailed {
		t.Errorf("%s: %v: %s", line, err, said.String())
	}
	return string(text), said.String()
}
