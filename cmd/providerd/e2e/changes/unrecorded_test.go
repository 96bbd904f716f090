//go:build slow

package changes_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestUnrecordedChangesAreFound changes links and tokens by SQL, without an event, and sets columns of the other kind,
// which the schema refuses. Changes by the program are no findings.
func TestUnrecordedChangesAreFound(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		l := newLedger(s)
		for _, body := range []string{
			`"client_id": "first", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"`,
			`"delegated_subject": "admin@example.com", "credentials": {}, "default_group_email_domain": "example.com"`,
			`"client_id": "third", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"`,
		} {
			path := providerdtest.OAuth2Path
			if strings.Contains(body, "delegated_subject") {
				path = providerdtest.DirectoryPath
			}
			s.Replicas[0].ExpectPost(t, contracttest.Client(t), 201, path, `{"name": "linked", `+body+`}`, "")
		}
		s.Stop(t)
		for _, line := range []string{
			"application create shop --name Shop --provider 1 --backchannel 2", "application create spare --name Spare",
			"token create --name ci --allow all", "token create --name ended --allow all", "token revoke 3",
		} {
			s.RunCommand(t, strings.Fields(line)...)
		}
		lines := s.RunCommand(t, "audit", "list", "--output", "jsonl")
		processtest.Must(t, os.WriteFile(filepath.Join(s.Dir, "lines.jsonl"), []byte(lines), 0o600))
		for want, statements := range unrecordedChanges() {
			for _, statement := range statements {
				copied := l.copy(t)
				processtest.Must(t, providerdtest.Execute(t.Context(), copied, strings.Split(statement, "; ")...))
				verify := s.Command(t.Context(), "PROVIDERD_DATABASE="+copied, "PROVIDERD_KEYSET="+s.Keyset(), "audit", "verify",
					"lines.jsonl", "--output", "json")
				output := providerdtest.ExpectExit(t, verify, providerdtest.ExitDiffers, `(?m)^\{"`+want)
				processtest.Require(t, !t.Failed(), "%s: %s", statement, output)
			}
		}
		l.expectRefused(t)
		for _, line := range []string{
			"audit verify lines.jsonl", "token renew 2", "token revoke --name ci", "application link spare --provider 3",
			"application unlink shop --backchannel 2", "application delete shop --yes", "audit verify lines.jsonl",
		} {
			s.RunCommand(t, strings.Fields(line)...)
		}
	})
}

// unrecordedChanges returns statements by the finding that they cause. Token 1 is the initial one, and token 3 is revoked.
func unrecordedChanges() map[string][]string {
	const changed = `":%d,"event":[0-9]+,"finding":"was changed without an event"`
	const copyToken = "INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at) SELECT name, prefix, " +
		"(SELECT secret FROM providers WHERE pk = 1), operations, created_at, expires_at FROM tokens WHERE id = 1"
	return map[string][]string{
		fmt.Sprintf("token"+changed, 2): {
			"UPDATE tokens SET expires_at = created_at WHERE id = 2", "UPDATE tokens SET revoked_at = created_at WHERE id = 2",
			`UPDATE tokens SET operations = '["other"]' WHERE id = 2`, "UPDATE tokens SET name = 'other' WHERE id = 2",
			"UPDATE tokens SET digest = (SELECT secret FROM providers WHERE pk = 1) WHERE id = 2",
		},
		fmt.Sprintf("token"+changed, 3):                      {"UPDATE tokens SET revoked_at = NULL WHERE id = 3"},
		`token":3,"finding":"was removed without an event"`:  {"DELETE FROM tokens WHERE id = 3"},
		`token":4,"finding":"was inserted without an event"`: {copyToken},
		fmt.Sprintf("provider"+changed, 1): {
			"UPDATE applications SET provider_pk = NULL WHERE slug = 'shop'",
			"UPDATE applications SET provider_pk = NULL; UPDATE applications SET provider_pk = 1 WHERE slug = 'spare'",
			"UPDATE applications SET slug = 'other' WHERE slug = 'shop'",
		},
		fmt.Sprintf("provider"+changed, 2): {
			"DELETE FROM backchannels WHERE provider_pk = 2", "UPDATE backchannels SET application_id = 2 WHERE provider_pk = 2",
		},
		fmt.Sprintf("provider"+changed, 3): {
			"UPDATE applications SET provider_pk = 3 WHERE slug = 'spare'", "INSERT INTO backchannels VALUES (3, 1)",
		},
	}
}

// expectRefused expects that the schema refuses values in columns of the other kind, and times that JSON cannot hold.
func (l *ledger) expectRefused(t *testing.T) {
	copied, distant := l.copy(t), "253402300800000000"
	if l.URL != "" {
		distant = "'10000-01-01 00:00:00+00'"
	}
	var statements []string
	for kind, other := range map[string]string{"oauth2": "workspace_directory", "workspace_directory": "oauth2"} {
		_, settings := l.columns(other)
		maps.Copy(settings, map[string]string{"exclude_users_service_account": "true", "include_claims_in_id_token": "true"})
		_, own := l.columns(kind)
		for name := range own {
			delete(settings, name)
		}
		for name, value := range settings {
			statements = append(statements, fmt.Sprintf("UPDATE providers SET %s = %s WHERE kind = '%s'", name, value, kind))
		}
	}
	for _, name := range []string{"created_at", "expires_at", "revoked_at"} {
		statements = append(statements, fmt.Sprintf("UPDATE tokens SET %s = %s", name, distant))
	}
	for _, statement := range statements {
		if err := providerdtest.Execute(t.Context(), copied, statement); err == nil || !strings.Contains(strings.ToLower(err.Error()), "check constraint") {
			t.Errorf("%s: %v, want a violated CHECK", statement, err)
		}
	}
}
