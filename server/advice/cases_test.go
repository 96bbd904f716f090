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

func fieldCases() []ruleCase {
	chosen := `,"client_secret":"` + strings.Repeat("yM3pQ8vT", 4) + `"`
	defaults := withoutKey + `,"redirect_uris":"","client_secret":null`
	return []ruleCase{
		given("nil_uuid", "authentication_flow", each("", "authentication_flow", nilUUID),
			append(each("", "authentication_flow", anyUUID), `"authentication_flow":null`)),
		of("nil_uuid", "authorization_flow", []string{nilUUID}, []string{lastUUID}),
		given("nil_uuid", "signing_key", each("", "signing_key", nilUUID), []string{defaults}),
		given("signing_key_missing", "signing_key", []string{publicClient + "," + withoutKey}, []string{publicClient, defaults}),
		given("signing_key_hs256", "signing_key",
			[]string{
				withoutKey + chosen, withoutKey + chosen + `,"redirect_uris":""`,
				withoutKey + `,"redirect_uris":"","client_secret":"` + strings.Repeat("yM3pQ8vT", 16) + `"`, defaults + `,"redirect_uris":"https://a.example.com/cb"`,
				defaults + `,"property_mappings":["` + anyUUID + `"]`, withoutKey + chosen + `,"sub_mode":"user_id"`,
				withoutKey + chosen + `,"include_claims_in_id_token":false`,
			},
			[]string{defaults, publicClient, chosen[1:], defaults + `,"name":"Shop"`, defaults + `,"client_id":"shop"`}),
		of("issuer_mode_global", "issuer_mode", []string{"global"}, []string{"per_provider"}),
		given("native_app_confidential", "client_type",
			each("", "redirect_uris", "com.example.app:/callback", "com.example.app:/callback\ncom.example.app://x/y"),
			append(each(publicClient, "redirect_uris", "com.example.app:/callback"),
				each("", "redirect_uris", "https://app.example.com/", "https://a/b\ncom.example.app://x/y")...)),
		of("client_id_reserved", "client_id",
			[]string{
				"caf\u00e9", "a\tb", "a\x7f", "a\nb", "urn:shop", "urn:uuid:" + anyUUID, "https://shop.example.com", "api://shop", "shop:web",
				"system:serviceaccount:shop:web",
			},
			[]string{"a b~!", "shop@example.com", "123.apps.example.com"}),
		of("value_padded", "client_id", []string{"shop ", "shop\ufeff", `"shop"`, " "}, []string{"my shop"}),
		of("reference_unresolved", "client_id", []string{"<CLIENT_ID>", "$CLIENT", "APP_CLIENT_ID", "${CLIENT}", "env:CLIENT", "#{Client}#"}, []string{"SHOP_1", "PASSWORDMANAGER"}),
		of("validity_zero", "access_code_validity", []string{"seconds=0", "hours=0;days=0.0"}, []string{"seconds=0.1"}),
		of("validity_zero", "access_token_validity", []string{"seconds=0"}, []string{"seconds=1"}),
		of("validity_zero", "refresh_token_validity", []string{"seconds=0"}, []string{"seconds=1"}),
		of("access_code_long_lived", "access_code_validity",
			[]string{
				"minutes=10.1", "minutes=9;seconds=60.001", "weeks=999999999.999999999", "milliseconds=600001", "microseconds=999999999",
			},
			[]string{"minutes=10", "minutes=9.9;seconds=6", "milliseconds=600000", "microseconds=600000000"}),
		of("access_token_long_lived", "access_token_validity",
			[]string{"days=1;seconds=1", "hours=24.1", "weeks=1"}, []string{"days=1", "hours=24", "minutes=1440"}),
		of("refresh_token_long_lived", "refresh_token_validity", []string{"days=366", "weeks=53"}, []string{"days=365", "weeks=52"}),
		of("sub_mode_reassignable", "sub_mode",
			[]string{"user_email", "user_upn", "user_username"}, []string{"hashed_user_id", "user_id", "user_uuid"}),
	}
}

func secretCases() []ruleCase {
	const field, enough = "client_secret", "yM3pQ8vT1kZ6wB9nR4cX7d"
	return []ruleCase{
		given("client_secret_needless", field, each(publicClient, field, "x", strings.Repeat("x", 255)), []string{publicClient}),
		given("client_secret_empty", field, each("", field, ""), []string{publicClient}),
		given("client_secret_short", field,
			append(each("", field, "a", enough[1:]), each(withoutKey, field, "changeme")...), each("", field, enough)),
		of("value_padded", field, []string{enough + "\n", enough + " ", `"` + enough + `"`}, []string{enough}),
		of("reference_unresolved", field,
			[]string{
				"$(env:SHOP_CLIENT_SECRET_VALUE)", "${SHOP_CLIENT_SECRET_VALUE}", "{{ shop.client_secret.value }}",
				"op://Infrastructure/shop/secret", "vault:secret/data/shop#value", "ENC[AES256_GCM,data:abcdefgh]",
				"__SHOP_CLIENT_SECRET_VALUE__", "SHOP_CLIENT_SECRET_VALUE", "file:///run/secrets/shop-client",
				"arn:aws:secretsmanager:eu-west-1:123456789012:secret:shop", "@Microsoft.KeyVault(SecretUri=https://shop.example.com/s)",
				"@@SHOP_CLIENT_VALUE_HERE@@", "#{Shop.Client.Value.Here}#", "secretref:shop-client-secret",
				"ref+awsssm://shop/client_secret", "((shop-client.value-of-it))", "%SHOP_CLIENT_SECRET_VALUE%", "{{resolve:ssm:/shop/client}}",
				"<insert the secret here please>", "${env:SHOP_SECRET_FROM_ENV}", "secret:projects/shop/client",
			}, []string{enough, "PASSWORDMANAGERPASSWORDMANAGER"}),
		of("client_secret_digest", field,
			[]string{
				"$2a$10$abcdefghijklmnopqrstuv", "$pbkdf2-sha512$310000$abcdefg$hij", "{MD5}abcdefghijklmnopqrst",
				"pbkdf2:sha256:600000$abcdefgh$0123", "{PBKDF2-SHA512}10000$abcdefgh$ijkl", "argon2$argon2id$v=19$m=102400,t=2",
				"{bcrypt}$2a$10$abcdefghijklm", "{SSHA512.b64}abcdefghijklmnop", "scrypt:32768:8:1$abcdefgh$ijkl", "sha256:abcdefghijklmnopqrstuv",
				"bcrypt_sha256$$2b$12$abcdefgh", "pbkdf2_sha256$870000$abcdefgh$ij", "{BLF-CRYPT}$2y$05$abcdefgh",
			},
			[]string{enough, "shaDe4QpZ7wK1vN8tR5yB2mX"}),
		of("client_secret_reserved", field,
			[]string{
				"yM3pQ8vT1kZ6wB9nR4cX\u00e9!", "yM3pQ8vT1kZ6\nwB9nR4cX7d", "JZ7h+q/4vQy8LmN1xRw6KpJ3sHd9Fb2Cg7TuE4aVb0k=",
				"yM3pQ8vT 1kZ6wB9nR4cX7d", "yM3pQ8vT:1kZ6wB9nR4cX7d", "yM3pQ8vT%1kZ6wB9nR4cX7d", "yM3pQ8vT&1kZ6wB9nR4cX7d", "yM3pQ8vT*1kZ6wB9nR4cX7d",
			},
			[]string{"yM3pQ8vT~1kZ6_wB9n-R4cX7.d"}),
	}
}

func redirectURICases() []ruleCase {
	const field, good = "redirect_uris", "https://app.example.com/callback"
	// second returns members with redirect URIs that have each URI in the second line.
	second := func(further string, uris ...string) (members []string) {
		for _, uri := range uris {
			members = append(members, each(further, field, good+"\n"+uri)...)
		}
		return members
	}
	// inLine2 returns the case of a rule that is tripped by URIs in the second line.
	inLine2 := func(code, further string, trips, passes []string) ruleCase {
		return ruleCase{code, "/" + field, second(further, trips...), second(further, passes...), "Line 2: "}
	}
	return []ruleCase{
		given("redirect_uris_missing", field, each(publicClient, field, ""),
			append(each("", field, ""), each(publicClient, field, good)...)),
		inLine2("redirect_uri_malformed", "",
			[]string{
				"https:callback", "https:/app.example.com/callback", "https:///callback", "https://:443/", "https://app.example.com:port/",
				"https://app.example.com/%zz", "https://caf\u00e9.example.com/", "https://[::1/", "http:x",
				"https://app.example.com/?x=%zz", "https://app.example.com:99999/", "https://app.example.com/%", "https://[::1::]/cb",
				"https://app.example.com/caf\u00e9", "/callback", "https://app.example.com/a b",
			},
			[]string{
				"https://app.example.com/caf%C3%A9", "https://[2001:db8::1]:8443/a;b=(c)/~d!$&'+=@?e[]=f/g",
				"https://[v1.fe80::a]/cb", "https://xn--bcher-kva.example.com/cb", "https://app.example.com:65535/", "https://a_b.example.com/%C3%A9",
			}),
		inLine2("redirect_uri_pattern", "",
			[]string{
				`https://a.example.com/\nhttps://b.example.com/`, `https://app\.example.com/`, "https://app.example.com/.+", "https://app.example.com/cb$",
				"^https://app.example.com/cb", "https://(a|b).example.com/cb", "https://app.example.com/(?:a)", "https://app.example.com/cb|x",
			},
			[]string{"https://app.example.com/%5C", "https://app.example.com/$batch", "https://app.example.com/a+b"}),
		inLine2("redirect_uri_placeholder", "",
			[]string{
				"http://127.0.0.1:<port>/", "https://{tenant}.example.com/", "https://$HOST/cb", "https://${HOST}/cb",
				"https://{{ host }}/cb", "https://app.example.com/$TENANT/cb", "https://app.example.com:$PORT/cb",
			},
			[]string{"https://app.example.com/%7B", "https://app.example.com/$metadata"}),
		inLine2("redirect_uri_joined", "",
			[]string{
				"https://a.example.com/cbhttps://b.example.com/cb", "https://a.example.com/;", "https://a.example.com/;https://b.example/",
				"https://a.example.com/,https://b.example.com/", "https://a.example.com/,", "https://a.example/,com.example.app:/cb",
			},
			[]string{
				"https://a.example.com/?to=https://b.example.com/", "https://a.example.com/cb,1;v=2", "https://a.example.com/?a=b,c;",
				good, "https://app.example.com/callback/", // Twice, as once.
			}),
		inLine2("redirect_uri_http", "",
			[]string{
				"http://app.example.com/", "http://192.0.2.1:8080/", "http://127.0.0.1.example.com/", "http://localhost.example.com/",
				"http://127.0.0.1@app.example.com/", "http://[2001:db8::1]/",
			},
			[]string{
				"http://127.0.0.1/", "http://127.0.0.1:51004/a", "http://[::1]:61023/a", "http://127.1.2.3/", "http://user@127.0.0.1/",
			}),
		inLine2("redirect_uri_localhost", "",
			[]string{"http://localhost/", "http://localhost:3000/callback", "http://localhost./", "http://app.localhost:8080/"},
			[]string{"https://localhost/", "http://127.0.0.1/", "https://notlocalhost/"}),
		inLine2("redirect_uri_wildcard", "",
			[]string{"https://*.example.com/", "https://app.example.com/*"},
			[]string{"https://app.example.com/?a=%2A"}),
		inLine2("redirect_uri_rewritten", "",
			[]string{
				"https://App.example.com/cb", "https://app.example.com/a/../cb", "https://app.example.com/./cb", "HTTPS://app.example.com/",
				"https://app.example.com/a/%2e%2E/cb", "https://app.example.com:/cb", "https://ex%61mple.com/cb", "https://app.example.com/cb/..",
			},
			// Some clients never send a path, or always a port.
			[]string{
				"https://app.example.com", "https://app.example.com:8006", "https://app.example.com?a=b", "https://app.example.com:443/cb",
				"https://app.example.com/.well-known/cb", "https://app.example.com/a..b/cb", "https://app.example.com/cb?to=/../",
				"http://127.0.0.1:80/cb", "https://user@app.example.com/cb",
			}),
		inLine2("redirect_uri_scheme_without_dot", publicClient,
			[]string{"myapp:/callback", "myapp://callback", "urn:ietf:wg:oauth:2.0:oob", "x-app+y:z"},
			[]string{"com.example.app:/callback", "com.example.app:callback"}),
	}
}

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

const directoryScope = "https://www.googleapis.com/auth/admin.directory."

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
			},
			[]string{"groups.example.com", "GROUPS.example.com", "example.org", "b\u00fccher.example", "xn--bcher-kva.example"}),
		given("credentials_incomplete", credentials,
			append(account(`"type":null`, `"type":1`, `"client_email":null`, `"client_email":""`, `"private_key":null`, `"token_uri":null`),
				account(`"client_email":null,"private_key":null,"token_uri":null`)...),
			[]string{whole, `"credentials":{"key":"x"}`, `"credentials":{"type":"bearer","key":"x"}`}),
		given("credentials_key_unusable", credentials,
			account(each("", "private_key", "x", strings.Repeat("x", 1<<20),
				"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", ed, ec,
				strings.ReplaceAll(key, "\n", `\n`), strings.Replace(key, "PRIVATE", "RSA PRIVATE", 1), key[:len(key)/2], rest,
				strings.ReplaceAll(ed, "PRIVATE", "ENCRYPTED PRIVATE"), key[strings.Index(key, "MII"):])...),
			account("", each("", "private_key", pkcs1)[0])),
		given("credentials_key_rewritten", credentials,
			account(each("", "private_key", strings.ReplaceAll(key, "\n", " "), strings.ReplaceAll(key, "\n", "\n  "), "\ufeff"+key,
				certificate+key, strings.ReplaceAll(key, "\n", "\n\n"), first+strings.ReplaceAll(rest, "\n", ""),
				strings.ReplaceAll(pkcs1, "RSA ", ""), strings.ReplaceAll(key, "PRIVATE", "PUBLIC"), "Key: "+key, strings.ReplaceAll(key, "\n", " \n"))...),
			account(each("", "private_key", key, strings.TrimSpace(key), strings.ReplaceAll(key, "\n", "\r\n"), pkcs1, key+"\n", "\n"+key,
				key+certificate, first+"\n"+strings.ReplaceAll(strings.ReplaceAll(rest, "\n", ""), "-----END", "\n-----END"),
				strings.ReplaceAll(key, "PRIVATE", "RSA PRIVATE"))...)),
		given("credentials_oauth_client", credentials,
			[]string{`"credentials":{"installed":{"client_id":"x"}}`, `"credentials":{"a":1,"web":{}}`, `"credentials":{"type":"authorized_user"}`},
			[]string{`"credentials":{"web":"https://example.com/"}`}),
		given("credentials_json_string", credentials,
			[]string{`"credentials":{"json":"{\"type\":\"service_account\"}"}`},
			[]string{`"credentials":{"json":"{x"}`, `"credentials":{"json":"[1]"}`}),
		given("scopes_incomplete", scopes,
			append(each("", scopes, users, groups, users+".readonly "+groups), append(each(whole, scopes, "users", ""),
				each("", scopes, users+"\n"+groups, users+"\t"+groups, users+";"+groups)...)...),
			append(each("", scopes, users+" "+groups, groups+","+users, users+", "+groups, "users.write groups.write"), whole)),
		of("nil_uuid", "filter_group", []string{nilUUID}, []string{anyUUID, lastUUID}),
		of("delete_action_destructive", "user_delete_action", []string{"delete"}, []string{"suspend", "do_nothing"}),
		of("delete_action_destructive", "group_delete_action", []string{"delete"}, []string{"suspend", "do_nothing"}),
	}
}
