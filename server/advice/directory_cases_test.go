package advice_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"example.com/providerd/store/storetest/processtest"
)

// serviceAccount is a key file with these members changed; null removes one.
func serviceAccount(t *testing.T, changes string) string {
	t.Helper()
	members := map[string]any{
		"type": "service_account", "client_email": "sync@project.example.com", "token_uri": "https://oauth2.example.com/token",
		"private_key": generated(),
	}
	processtest.Must(t, json.Unmarshal([]byte("{"+changes+"}"), &members))
	maps.DeleteFunc(members, func(_ string, value any) bool { return value == nil })
	text, err := json.Marshal(members)
	processtest.Must(t, err)
	return `"scopes":"` + directoryScope + `user ` + directoryScope + `group","credentials":` + string(text)
}

const scopePrefix, directoryScope = "https://www.googleapis.com/auth/", "https://www.googleapis.com/auth/admin.directory."

// generated returns a key as Google has them.
var generated = sync.OnceValue(func() string { //nolint:gochecknoglobals // It takes long.
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	return encoded("PRIVATE KEY", key, err)
})

func encoded(label string, key any, cause error) string {
	body, err := x509.MarshalPKCS8PrivateKey(key)
	if of, ok := key.(*rsa.PrivateKey); ok && label == "RSA PRIVATE KEY" {
		body = x509.MarshalPKCS1PrivateKey(of)
	}
	if err := errors.Join(cause, err); err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: body}))
}

func directoryCases(t *testing.T) []ruleCase {
	t.Helper()
	const users, groups = directoryScope + "user", directoryScope + "group"
	const subject, credentials, scopes = "delegated_subject", "credentials", "scopes"
	account := func(changes ...string) (members []string) {
		for _, change := range changes {
			members = append(members, serviceAccount(t, change))
		}
		return members
	}
	whole, key := serviceAccount(t, ""), generated()
	traditional, err := rsa.GenerateKey(rand.Reader, 2048)
	pkcs1 := encoded("RSA PRIVATE KEY", traditional, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	ed := encoded("PRIVATE KEY", edwards, err)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ec := encoded("PRIVATE KEY", curve, err)
	first, rest, _ := strings.Cut(key, "\n")
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))
	return []ruleCase{
		given("delegated_subject_outside_directory", subject,
			append(each(whole, subject, "Sync@project.example.com"),
				each("", subject, "admin@gmail.com", "Admin@GoogleMail.com", "sync@p.iam.gserviceaccount.com", "1-compute@developer.gserviceaccount.com")...),
			append(each("", subject, "sync@example.com", "admin@example.org", "admin@sub.example.com", "admin@b\u00fccher.example",
				"gmail.com@example.com", "admin@notgmail.com", "admin@gmail.com.example.com"), whole)),
		given("credentials_empty", credentials, []string{`"credentials":{}`}, []string{whole}),
		given("credentials_nested", credentials,
			[]string{`"credentials":{"privateKeyData":"x"}`, `"credentials":{"key":{"private_key":"x"}}`},
			[]string{whole, `"credentials":{"a":{"key":"x"}}`}),
		of("domain_malformed", "default_group_email_domain",
			[]string{
				"@example.com", "groups@example.com", "https://example.com", "example.com\n", `"example.com"`, "exa_mple.com", "example.com.",
				"example.com,example.org", "${DOMAIN}", "example..com", "-example.com", "example.com/x",
				"example.com;example.org", ".example.com", "exa mple.com", "mailto:ops@example.com", "*.example.com", "example.com:25", "xn--\u00fc.example", strings.Repeat("a", 64) + ".example",
			},
			[]string{
				"groups.example.com", "GROUPS.example.com", "example.org", "b\u00fccher.example", "xn--bcher-kva.example", "a.b.c.example.com",
				"3com.example", "example.co.uk", "B\u00dcCHER.example", "xn--bcher-kva.example.com",
			}),
		given("credentials_incomplete", credentials,
			append(account(`"type":null`, `"type":1`, `"client_email":null`, `"client_email":""`, `"private_key":null`, `"token_uri":null`),
				account(`"client_email":null,"private_key":null,"token_uri":null`)...),
			[]string{whole, `"credentials":{"key":"x"}`, `"credentials":{"type":"bearer","key":"x"}`}),
		given("credentials_key_unusable", credentials,
			account(each("", "private_key", "x", strings.Repeat("x", 1<<20),
				"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", ed, ec,
				strings.ReplaceAll(key, "\n", `\n`), strings.Replace(key, "PRIVATE", "RSA PRIVATE", 1), key[:len(key)/2], rest,
				strings.ReplaceAll(ed, "PRIVATE", "ENCRYPTED PRIVATE"), key[strings.Index(key, "MII"):],
				encoded("OPENSSH PRIVATE KEY", edwards, err), strings.ReplaceAll(ec, "PRIVATE", "EC PRIVATE"), certificate, "secret://sync/key",
				strings.Replace(key, "A", "*", 40), strings.ReplaceAll(pkcs1, "-----END", "-----END X"))...),
			account("", each("", "private_key", pkcs1)[0])),
		given("credentials_key_rewritten", credentials,
			account(each("", "private_key", strings.ReplaceAll(key, "\n", " "), strings.ReplaceAll(key, "\n", "\n  "), "\ufeff"+key,
				certificate+key, strings.ReplaceAll(key, "\n", "\n\n"), first+strings.ReplaceAll(rest, "\n", ""),
				strings.ReplaceAll(pkcs1, "RSA ", ""), strings.ReplaceAll(key, "PRIVATE", "PUBLIC"), "Key: "+key, strings.ReplaceAll(key, "\n", " \n"),
				strings.ReplaceAll(pkcs1, "\n", " "), "Bag Attributes\n"+pkcs1, strings.ReplaceAll(key, "\n", "\r"), strings.ReplaceAll(key, "\n", "\n\t"), `"`+key+`"`)...),
			account(each("", "private_key", key, strings.TrimSpace(key), strings.ReplaceAll(key, "\n", "\r\n"), pkcs1, key+"\n", "\n"+key,
				key+certificate, first+"\n"+strings.ReplaceAll(strings.ReplaceAll(rest, "\n", ""), "-----END", "\n-----END"),
				strings.ReplaceAll(key, "PRIVATE", "RSA PRIVATE"), pkcs1+pkcs1, strings.ReplaceAll(pkcs1, "\n", "\r\n"), key+"# sync",
				"\r\n "+key, strings.TrimSpace(pkcs1))...)),
		given("credentials_oauth_client", credentials,
			[]string{`"credentials":{"installed":{"client_id":"x"}}`, `"credentials":{"a":1,"web":{}}`, `"credentials":{"type":"authorized_user"}`},
			[]string{`"credentials":{"web":"https://example.com/"}`}),
		given("credentials_json_string", credentials,
			[]string{`"credentials":{"json":"{\"type\":\"service_account\"}"}`},
			[]string{`"credentials":{"json":"{x"}`, `"credentials":{"json":"[1]"}`}),
		given("scopes_incomplete", scopes,
			append(each("", scopes, users, groups, users+".readonly "+groups), append(each(whole, scopes, "users", "", "openid email",
				scopePrefix+"cloud-platform", strings.ToUpper(users+" "+groups), users+"/ "+groups+"/"),
				each("", scopes, users+"\n"+groups, users+"\t"+groups, users+";"+groups, users+"|"+groups, users+"\r\n"+groups, users+groups)...)...),
			append(each("", scopes, users+" "+groups, groups+","+users, users+", "+groups, "users.write groups.write", users+"  "+groups,
				groups+" "+users+" "+users, users+","+groups+","+groups+".member", users+" openid "+groups, users+".readonly,"+users+","+groups), whole)),
		of("nil_uuid", "filter_group", []string{nilUUID}, []string{anyUUID, lastUUID}),
		of("delete_action_destructive", "user_delete_action", []string{"delete"}, []string{"suspend", "do_nothing"}),
		of("delete_action_destructive", "group_delete_action", []string{"delete"}, []string{"suspend", "do_nothing"}),
	}
}
