package commands_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
	"example.com/providerd/store/storetest/processtest"
)

// applyCase is a file of a user of another system. Its field is that of an OAuth2 provider, unless it has a whole file.
type applyCase struct {
	name, field, whole string
	// secret is the content of the file s, and variable the value of the variable S.
	secret, variable string
	status           int
	says             string
}

// applyCases returns what users of other systems write, and what apply must say.
func applyCases() []applyCase {
	const (
		secret  = "q7Rk2mVx9TbN4cYw1JdGs5HaT7EoKi3MzPLf"
		flow    = "authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"
		write   = "write ${NAME} for a variable or ${file:PATH} for a file"
		foreign = "`client_secret` is a reference for another system and would be stored as is; " + write
		unknown = " has a tag that providerd does not know; "
		checked = "checked 1 entry without a server; pass --server or --as to see what would change"
		example = "; write a file such as oauth2: [{name: Wiki, authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01, " +
			"redirect_uris: [https://wiki.example.com/callback]}]"
		directly = "workspace_directory: [{name: d, delegated_subject: admin@example.com, default_group_email_domain: example.com, " +
			"credentials: \"${file:s}\"}]\n"
	)
	return []applyCase{
		{name: "a tag for a variable", field: "client_secret: !Env NAME", status: 1, says: "`client_secret`" + unknown + write},
		{name: "a tag for a secret", field: "client_secret: !vault x", status: 1, says: "`client_secret`" + unknown + write},
		{name: "a search", field: "jwks_sources: !Find [a, [b, c]]", status: 1, says: "`jwks_sources`" + unknown + "write the UUID itself"},
		{
			name: "the name of a variable", field: "client_secret: GRAFANA_OIDC_CLIENT_SECRET_PRODUCTION",
			says: "advice: /client_secret: Looks like a reference or a placeholder of another system. It is not replaced here, " +
				"so anyone who can read the file knows the value. Set the value that it stands for. (openapi.yaml, OAuth2ProviderRequest)",
		},
		{name: "PowerShell", field: "client_secret: $(env:X)", status: 1, says: foreign},
		{name: "Ansible", field: "client_secret: '{{ x }}'", status: 1, says: foreign},
		{name: "1Password", field: "client_secret: op://a/b", status: 1, says: foreign},
		{name: "Vault", field: "client_secret: vault:a#b", status: 1, says: foreign},
		{name: "SOPS", field: "client_secret: ENC[AES256_GCM,data:a]\nsops: {version: 3.7}", status: 1, says: "sops is not a kind of provider; the kinds are oauth2 and workspace_directory"},
		{
			name: "GitHub", field: "client_secret: ${{ secrets.X }}", status: 1,
			says: "`client_secret` contains a ${ that is not part of a reference such as ${NAME} or ${file:PATH}; write $${ for ${ itself",
		},
		{
			name: "Helm", field: "client_secret: {{ .Values.x }}", status: 1,
			says: "the name of a member must be a string; quote it, or render templates such as {{ x }} first",
		},
		{name: "a byte order mark", field: "client_secret: ${file:s}", secret: "\ufeff" + secret + "\r\n", says: checked},
		{name: "one line feed", field: "client_secret: ${file:s}", secret: secret + "\n", says: checked},
		{
			name: "an empty file", field: "client_secret: ${file:s}", secret: "\n", status: 1,
			says: "`client_secret` refers to the file s, which is empty; write '' for an empty value",
		},
		{
			name: "a line break in a JSON string", whole: directly, secret: "{\"private_key\":\"a\nb\"}", status: 1,
			says: "`credentials` refers to file:s, whose value must be JSON, because the field is not a string: line 1, column 18: " +
				`a string contains an unescaped control character; write \u000a instead`,
		},
		{name: "JSON with CR LF", whole: directly, secret: "{\r\n \"a\":1\r\n}\r\n", says: checked},
		{
			name: "a variable with a line feed", field: "client_secret: ${S}", variable: secret + "\n",
			says: "advice: /client_secret: Begins or ends with white space, a line break, a quotation mark or a byte order mark, " +
				"which is part of the value. Remove it, here and in the client. (RFC 6749, appendix A)",
		},
		{
			name: "a backslash and n", field: "redirect_uris: ${S}", variable: `https://a.example.com\nhttps://b.example.com`,
			says: `Line 1: A backslash and "n" are not a line break, and a redirect URI is not a regular expression. ` +
				"Put each URI on a line of its own, without backslashes. (RFC 9700, section 2.1)",
		},
		{name: "YAML 1.2", whole: "%YAML 1.2\n---\noauth2: [{name: n, " + flow + "}]\n", says: checked},
		{
			name: "yes", field: "include_claims_in_id_token: yes", status: 1,
			says: "must be true or false. Write true instead of yes or on, and false instead of no or off.",
		},
		{name: "a number", field: "client_id: 123456", status: 1, says: "`client_id` must be a string. Quote a number to make it a string."},
		{
			name: "an octal number", field: "client_id: 0123", status: 1,
			says: "`client_id` is not a JSON number; write decimal digits, or quote it to make it a string",
		},
		{name: "no", field: "client_id: no", says: checked},
		{
			name: "an at sign", field: "client_secret: @x", status: 1,
			says: "is not valid YAML: found character that cannot start any token; quote a value that begins with @ or `",
		},
		{
			name: "an anchor of another document", whole: "x-a: &a {" + flow + "}\n---\noauth2: [{name: n, <<: *a}]\n", status: 1,
			says: "refers to an unknown anchor; define it earlier in the same document, or quote a value that begins with *",
		},
		{name: "folded lines", field: "redirect_uris: >\n      a:b\n      c:d", status: 1, says: "Write a list, or use | instead of >, because > joins the lines."},
		{name: "a list of lines", field: "redirect_uris: ['https://a.example.com/', 'https://b.example.com/']", says: checked},
		{name: "CR LF", field: "redirect_uris: |\r\n      https://a.example.com/\r\n      https://b.example.com/\r", says: checked},
		{name: "JSON", whole: `{"$schema": "x.json", "oauth2": [{"name": "n", "` + strings.Replace(flow, ": ", `": "`, 1) + `"}]}`, says: checked},
		{name: "two documents", whole: "---\noauth2: [{name: n, " + flow + "}]\n---\noauth2: [{name: m, " + flow + "}]\n", says: strings.Replace(checked, "1 entry", "2 entries", 1)},
		{name: "a blueprint", whole: "version: 1\nentries: []\n", status: 1, says: "is a blueprint" + example},
		{name: "a Kubernetes object", whole: "apiVersion: v1\nkind: Secret\n", status: 1, says: "is a Kubernetes object" + example},
		{name: "no-break spaces", whole: "oauth2:\n\u00a0\u00a0- name: n\n", status: 1, says: "t.yaml:2:1: is indented with no-break spaces; use spaces"},
	}
}

// TestFilesOfOtherSystems checks what users of other systems write. The message must say what to write instead.
func TestFilesOfOtherSystems(t *testing.T) {
	t.Parallel()
	for _, c := range applyCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, text := t.TempDir(), c.whole
			if text == "" {
				text = "oauth2:\n  - name: n\n    authorization_flow: 3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01\n    " + c.field + "\n"
			}
			processtest.Must(t, errors.Join(os.WriteFile(filepath.Join(dir, "t.yaml"), []byte(text), 0o600),
				os.WriteFile(filepath.Join(dir, "s"), []byte(c.secret), 0o600)))
			command := providerdtest.Command(t.Context(), dir, "S="+c.variable, "apply", "-f", "t.yaml", "--dry-run")
			providerdtest.ExpectExit(t, command, c.status, "(?m)"+regexp.QuoteMeta(c.says)+"$")
		})
	}
}
