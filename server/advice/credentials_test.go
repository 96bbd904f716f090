package advice_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"strings"
	"testing"

	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

type directorySettings = store.WorkspaceDirectorySettings

const (
	googleUsers  = "https://www.googleapis.com/auth/admin.directory.user"
	googleGroups = "https://www.googleapis.com/auth/admin.directory.group"
)

// shortKey is the key of RFC 8410, section 10.3.
const shortKey = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n" +
	"-----END PRIVATE KEY-----\n"

// serviceAccount is a key file with these members changed; nil removes one.
func serviceAccount(t *testing.T, changes map[string]any) func(*directorySettings) {
	t.Helper()
	members := map[string]any{
		"type": "service_account", "client_email": "sync@project.example.com",
		"private_key": shortKey,
	}
	maps.Copy(members, changes)
	maps.DeleteFunc(members, func(_ string, value any) bool { return value == nil })
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return credentialsText(string(text))
}

func credentialsText(text string) func(*directorySettings) {
	return func(s *directorySettings) { s.Credentials = store.NewSecret(text) }
}

func scopes(scopes ...string) func(*directorySettings) {
	return func(s *directorySettings) { s.Scopes = strings.Join(scopes, " ") }
}

func subject(address string) func(*directorySettings) {
	return func(s *directorySettings) { s.DelegatedSubject = address }
}

func credentialsCases(t *testing.T) []ruleCase[directorySettings] {
	t.Helper()
	type changes = []func(*directorySettings)
	account := func(changes map[string]any) func(*directorySettings) { return serviceAccount(t, changes) }
	whole := account(nil)
	return []ruleCase[directorySettings]{
		{
			code: "delegated_subject_service_account", pointer: "/delegated_subject",
			trips:  changes{and(whole, subject("Sync@project.example.com"))},
			passes: changes{and(whole, subject("sync@example.com")), whole},
		},
		{
			code: "delegated_subject_other_domain", pointer: "/delegated_subject",
			trips:  changes{subject("admin@example.org"), subject("admin@sub.example.com")},
			passes: changes{subject("admin@EXAMPLE.com")},
		},
		{
			code: "credentials_incomplete", pointer: "/credentials",
			trips: changes{
				account(map[string]any{"type": nil}), account(map[string]any{"type": 1}),
				account(map[string]any{"client_email": nil}), account(map[string]any{"client_email": ""}),
				account(map[string]any{"private_key": nil}), credentialsText(`{"type":"service_account"}`),
			},
			passes: changes{whole, credentialsText(`{}`), credentialsText(`{"type":"bearer","key":"x"}`), credentialsText("")},
		},
		{
			code: "credentials_key_unusable", pointer: "/credentials",
			trips: changes{
				account(map[string]any{"private_key": "x"}),
				account(map[string]any{"private_key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}),
				account(map[string]any{"private_key": strings.Repeat("x", 1<<20)}),
			},
			passes: changes{whole, account(map[string]any{"private_key": rsaKey(t, 2048)})},
		},
		{
			code: "credentials_oauth_client", pointer: "/credentials",
			trips:  changes{credentialsText(`{"installed":{"client_id":"x"}}`), credentialsText(`{"a":1,"web":{}}`)},
			passes: changes{credentialsText(`{"web":"https://example.com/"}`)},
		},
		{
			code: "credentials_json_string", pointer: "/credentials",
			trips:  changes{credentialsText(`{"json":"{\"type\":\"service_account\"}"}`)},
			passes: changes{credentialsText(`{"json":"{x"}`), credentialsText(`{"json":"[1]"}`)},
		},
		{
			code: "scopes_incomplete", pointer: "/scopes",
			trips: changes{
				scopes(googleUsers), scopes(googleGroups), scopes(googleUsers+".readonly", googleGroups),
				and(whole, scopes("users")),
			},
			passes: changes{
				scopes(googleUsers, googleGroups), scopes(googleGroups + "," + googleUsers), scopes("users.write groups.write"),
				whole,
			},
		},
	}
}

// rsaKey is a key as Google has them, in the form of RFC 8017, appendix A.1.2.
func rsaKey(t testing.TB, bits int) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return string(pem.EncodeToMemory(block))
}

// BenchmarkCredentials shows what keys and the largest object cost.
func BenchmarkCredentials(b *testing.B) {
	const megabyte = 1 << 20
	key, err := json.Marshal(rsaKey(b, 4096))
	if err != nil {
		b.Fatal(err)
	}
	var members strings.Builder
	for i := range megabyte / 16 {
		fmt.Fprintf(&members, `"%d":"{",`, i)
	}
	for name, text := range map[string]string{
		"key of 4096 bits": `{"private_key":` + string(key) + `}`,
		"members":          "{" + members.String() + `"b":1}`,
		"JSON string":      `{"a":"` + strings.Repeat(`\u007b`, megabyte/6) + `"}`,
	} {
		settings := directorySettings{Credentials: store.NewSecret(text)}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				advice.WorkspaceDirectory(settings)
			}
		})
	}
}
