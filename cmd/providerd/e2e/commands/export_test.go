package commands_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/server/contracttest"
	"example.com/providerd/store/storetest/processtest"
)

// TestExportedRecordsComeBack exports records with every kind of value, deletes them, and applies the file: the same
// records exist again with other pks, also if references replace the secrets.
func TestExportedRecordsComeBack(t *testing.T) {
	t.Parallel()
	dir, client := t.TempDir(), contracttest.Client(t)
	server := providerdtest.Serve(t, dir, "--log-format", "json")
	for _, fields := range []string{
		`"name":"{{ x }}","client_secret":"vault:a#b","client_id":"op://a/b"`, `"name":"${HOME}","client_secret":"$${X} ${","client_id":"yes"`,
		`"name":"- a: #b 'c' \"d\" \\","client_secret":"\n lines\n\n of\t\r\n","client_id":"1e5"`,
		`"name":"é\u2028\u0085\ufeff\u001b😀\u009b\u007f\u202e\u2066\u200b\udb40\udc01\\u202e","client_secret":"","client_type":"public","client_id":" x "`,
		`"name":"null","redirect_uris":"https://a.example.com/\r\nhttps://b.example.com/?q=${X}\n","sub_mode":"user_upn",
		 "authentication_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e02","jwks_sources":["3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e03"],
		 "include_claims_in_id_token":false,"issuer_mode":"global","access_code_validity":"seconds=1.5;minutes=2"`,
	} {
		server.ExpectPost(t, client, http.StatusCreated, providerdtest.OAuth2Path,
			`{"authorization_flow":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01",`+fields+`}`, "")
	}
	for _, fields := range []string{
		`"credentials":{}`, `"credentials":{"":"","id":1.10,"<<":1e400,"a":[-0,123456789012345678901234567890,1E+2,null,true,[],{}],
		 "${X}":{"b":"${X}","c":"$$${","d":"0x1f","e":"2026-01-31","f":"~","{{ x }}":["{{ x }}","\n$(env:X) "],"g":" \n","\u202e":"\u009b\n\u2066"}}`,
		`"credentials":{"key":"x"},"scopes":"a b","filter_group":"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e04","user_delete_action":"suspend",
		 "property_mappings":["3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e03","3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e03"]`,
	} {
		server.ExpectPost(t, client, http.StatusCreated, providerdtest.DirectoryPath,
			`{"name":"dir","delegated_subject":"a@example.com","default_group_email_domain":"true",`+fields+`}`, "")
	}
	expectVisible(t, dir, client, server)
	want, first := listedRecords(t, dir)
	for round, flags := range [][]string{{"--reveal"}, nil} {
		environment := append(os.Environ(), "PROVIDERD_TOKEN="+providerdtest.Token(t, dir))
		file := filepath.Join(dir, fmt.Sprint("providers", round, ".yaml"))
		export := providerdtest.Command(t.Context(), dir, append([]string{"provider", "export", "--to", file}, flags...)...)
		output := processtest.Run(t, export)
		for _, match := range regexp.MustCompile(`(?m)^(\w+) replaces the \w+ of provider (\d+)$`).FindAllStringSubmatch(output, -1) {
			environment = append(environment, match[1]+"="+first[match[2]])
		}
		providerdtest.RunCommand(t, dir, append([]string{"provider", "delete", "--yes"}, slices.Collect(maps.Keys(first))...)...)
		apply := providerdtest.Command(t.Context(), dir, "apply", "-f", file, "--server", server.URL, "--parallel", "1")
		apply.Env = environment
		if output, err := apply.CombinedOutput(); err != nil || !strings.Contains(string(output), "8 entries: 8 created,") {
			content, _ := os.ReadFile(file)
			t.Fatalf("%v: %s\n%s", err, output, content)
		}
		var got []map[string]any
		got, first = listedRecords(t, dir)
		for i, record := range want {
			if len(got) != len(want) || !reflect.DeepEqual(got[i], record) {
				t.Errorf("%v: record %d of %d is\n%v\nwant\n%v", flags, i, len(got), got[i], record)
			}
		}
	}
}

// expectVisible checks that no output, and no log of a request without a token, has characters that control a terminal,
// are invisible or change the direction of text.
func expectVisible(t *testing.T, dir string, client *http.Client, server *providerdtest.Server) {
	const text = `oauth2: [{name: "a\u202e", authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01}]`
	processtest.Must(t, os.WriteFile(filepath.Join(dir, "hidden.yaml"), []byte(text), 0o600))
	written := map[string]string{}
	for _, line := range []string{
		"provider list --reveal", "provider list --reveal --output json",
		"provider show 4 --output json", "provider show 4", "provider export --reveal",
		"apply --dry-run --file hidden.yaml --output json", "apply --dry-run --file hidden.yaml",
	} {
		written[line] = providerdtest.RunCommand(t, dir, strings.Fields(line)...)
	}
	server.Send(t, client, http.MethodGet, "/%C2%9B%7F%E2%80%AE%E2%81%A6%FF", "", "", nil)
	const path = `"path":"/\u009b\u007f\u202e\u2066\ufffd"`
	processtest.WaitUntil(t, "the request is logged", func() bool { return strings.Contains(server.Stderr.String(), path) })
	written["log"] = server.Stderr.String()
	isHidden := func(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' }
	for name, text := range written {
		if at := strings.IndexFunc(text, isHidden); at >= 0 {
			t.Errorf("%s has %+q", name, text[at:min(at+20, len(text))])
		}
	}
}

// listedRecords returns the records without their pks, and the secrets by pk.
func listedRecords(t *testing.T, dir string) ([]map[string]any, map[string]string) {
	t.Helper()
	text := providerdtest.RunCommand(t, dir, "provider", "list", "--reveal", "--output", "json")
	var records []map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	processtest.Must(t, decoder.Decode(&records))
	secrets := map[string]string{}
	for _, record := range records {
		secret, isOAuth2 := record["client_secret"].(string)
		if !isOAuth2 {
			text, err := json.Marshal(record["credentials"])
			processtest.Must(t, err)
			secret = string(text)
		}
		secrets[fmt.Sprint(record["pk"])] = secret
		delete(record, "pk")
	}
	return records, secrets
}
