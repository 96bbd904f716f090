package advice_test

import "strings"

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
				withoutKey + chosen + `,"jwks_sources":["` + anyUUID + `"]`, defaults + `,"redirect_uris":"https://[::1]:8443/cb"`,
				defaults + `,"redirect_uris":"http://127.0.0.1/\nhttps://a.example.com/"`, withoutKey + `,"client_secret":"` + strings.Repeat("a", 255) + `"`,
				withoutKey + `,"redirect_uris":null,"client_secret":"` + strings.Repeat("k", 22) + `"`,
			},
			[]string{
				defaults, publicClient, chosen[1:], defaults + `,"name":"Shop"`, defaults + `,"client_id":"shop"`, defaults + `,"sub_mode":"user_id"`,
				defaults + `,"issuer_mode":"per_provider"`, defaults + `,"access_token_validity":"minutes=5"`, defaults + `,"jwks_sources":[]`,
			}),
		given("issuer_mode_global", "issuer_mode",
			append(each(publicClient, "issuer_mode", "global"), append(each(`"redirect_uris":""`, "issuer_mode", "global"),
				each(`"client_id":"a"`+chosen, "issuer_mode", "global", "global")...)...),
			append(each("", "issuer_mode", "per_provider"), each(publicClient, "issuer_mode", "per_provider")...)),
		given("native_app_confidential", "client_type",
			each("", "redirect_uris", "com.example.app:/callback", "com.example.app:/callback\ncom.example.app://x/y"),
			append(each(publicClient, "redirect_uris", "com.example.app:/callback"),
				each("", "redirect_uris", "https://app.example.com/", "https://a/b\ncom.example.app://x/y")...)),
		of("client_id_reserved", "client_id",
			[]string{
				"caf\u00e9", "a\tb", "a\x7f", "a\nb", "urn:shop", "urn:uuid:" + anyUUID, "https://shop.example.com", "api://shop", "shop:web",
				"system:serviceaccount:shop:web", "did:web:shop.example.com", "acct:shop@example.com", "shop:", "no\u00a0break", "\u5e97",
			},
			[]string{"a b~!", "shop@example.com", "123.apps.example.com", anyUUID, "0oa1b2C3d4", "shop_web-2", "shop/web", "a.b.c"}),
		of("value_padded", "client_id", []string{"shop ", "shop\ufeff", `"shop"`, " "}, []string{"my shop"}),
		of("reference_unresolved", "client_id", []string{
			"<CLIENT_ID>", "$CLIENT", "APP_CLIENT_ID", "${CLIENT}", "env:CLIENT", "#{Client}#", "((shop.id))", "@@CLIENT@@",
			"%CLIENT%", "__CLIENT__", "{{client}}",
		}, []string{"SHOP_1", "PASSWORDMANAGER", "vault", "env-shop", "secret", "$", "a{b}"}),
		of("validity_zero", "access_code_validity", []string{"seconds=0", "hours=0;days=0.0", "seconds=0.0000036"}, []string{"milliseconds=1000"}),
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
				"ssm:shop/client/secret-value", "keyvault:shop-client-secret", "infisical:/shop/CLIENT_SECRET", "doppler:shop.prd.CLIENT",
				"${file:/run/secrets/shop-client}", "OIDC_SHOP_CLIENT_SECRET_2", "{{ lookup('env', 'SHOP') }}", "$SHOP_CLIENT_SECRET_VALUE",
			}, []string{
				enough, "PASSWORDMANAGERPASSWORDMANAGER", "vault-yM3pQ8vT1kZ6wB9nR4cX7d", "secret_yM3pQ8vT1kZ6wB9nR4cX7d",
				"file.yM3pQ8vT1kZ6wB9nR4cX7d", "env_yM3pQ8vT1kZ6wB9nR4cX7d",
			}),
		of("client_secret_digest", field,
			[]string{
				"$2a$10$abcdefghijklmnopqrstuv", "$pbkdf2-sha512$310000$abcdefg$hij", "{MD5}abcdefghijklmnopqrst",
				"pbkdf2:sha256:600000$abcdefgh$0123", "{PBKDF2-SHA512}10000$abcdefgh$ijkl", "argon2$argon2id$v=19$m=102400,t=2",
				"{bcrypt}$2a$10$abcdefghijklm", "{SSHA512.b64}abcdefghijklmnop", "scrypt:32768:8:1$abcdefgh$ijkl", "sha256:abcdefghijklmnopqrstuv",
				"bcrypt_sha256$$2b$12$abcdefgh", "pbkdf2_sha256$870000$abcdefgh$ij", "{BLF-CRYPT}$2y$05$abcdefgh",
				"$argon2id$v=19$m=65536,t=3,p=4$a", "$scrypt$ln=16,r=8,p=1$abcdef", "$6$rounds=5000$abcdefgh$ijk", "{noop}abcdefghijklmnopqrst",
				"md5:0123456789abcdef0123456789abcdef", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", strings.Repeat("*", 24), strings.Repeat("\u2022", 24),
			},
			[]string{enough, "shaDe4QpZ7wK1vN8tR5yB2mX", "md5-yM3pQ8vT1kZ6wB9nR4cX7", "bcrypt.yM3pQ8vT1kZ6wB9nR4", "argon2_yM3pQ8vT1kZ6wB9nR4", "sha512yM3pQ8vT1kZ6wB9nR4"}),
		of("client_secret_reserved", field,
			[]string{
				"yM3pQ8vT1kZ6wB9nR4cX\u00e9!", "yM3pQ8vT1kZ6\nwB9nR4cX7d", "JZ7h+q/4vQy8LmN1xRw6KpJ3sHd9Fb2Cg7TuE4aVb0k=",
				"yM3pQ8vT 1kZ6wB9nR4cX7d", "yM3pQ8vT:1kZ6wB9nR4cX7d", "yM3pQ8vT%1kZ6wB9nR4cX7d", "yM3pQ8vT&1kZ6wB9nR4cX7d", "yM3pQ8vT*1kZ6wB9nR4cX7d",
				"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "Xk9!vQm2#Tz7$Lp4@Rw6^Bn8", "correct horse battery staple", "a{b}c(d)e[f]g;h,i.j|k~l'm",
				"a long secret of a caf\u00e9",
			},
			// As of a UUID, Microsoft, Google, openssl and Python.
			[]string{
				"yM3pQ8vT~1kZ6_wB9n-R4cX7.d", anyUUID, "abc8Q~dEfGhIjKlMnOpQrStUvWxYz.012345-_6", "GOCSPX-yM3pQ8vT1kZ6wB9nR4cX7dF2",
				strings.Repeat("0a1b", 16), "Ejb2_0-pT9vXk3QmZc7RyLw8NfH5sGdU4aVtBoIi6eM",
			}),
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
				"https://app.example.com/caf\u00e9", "/callback", "https://app.example.com/a b", "//app.example.com/cb", "app.example.com/cb",
				"https://[fe80::1%25eth0]/cb", "https://app.example.com/cb?a=%4", "https://b\u00fccher.example/", "http://[::1]:port/", "https://\u200bapp.example.com/",
			},
			[]string{
				"https://app.example.com/caf%C3%A9", "https://[2001:db8::1]:8443/a;b=(c)/~d!$&'+=@?e[]=f/g",
				"https://[v1.fe80::a]/cb", "https://xn--bcher-kva.example.com/cb", "https://app.example.com:65535/", "https://a_b.example.com/%C3%A9",
				"https://app.example.com/cb?state=%7B%7D", "https://10.0.0.1/cb", "https://app/cb", "https://app.example.com./cb", "https://app.example.com//cb",
			}),
		inLine2("redirect_uri_pattern", "",
			[]string{
				`https://a.example.com/\nhttps://b.example.com/`, `https://app\.example.com/`, "https://app.example.com/.+", "https://app.example.com/cb$",
				"^https://app.example.com/cb", "https://(a|b).example.com/cb", "https://app.example.com/(?:a)", "https://app.example.com/cb|x",
				`https://.*\.example\.com/cb`, "https://app.example.com/(?i)cb", `https://app.example.com/\d+`, "https://app.example.com/[a-z].+", `.+://app.example.com/cb`,
			},
			[]string{"https://app.example.com/%5C", "https://app.example.com/$batch", "https://app.example.com/a+b", "https://app.example.com/(a)", "https://app.example.com/a.b"}),
		inLine2("redirect_uri_placeholder", "",
			[]string{
				"http://127.0.0.1:<port>/", "https://{tenant}.example.com/", "https://$HOST/cb", "https://${HOST}/cb",
				"https://{{ host }}/cb", "https://app.example.com/$TENANT/cb", "https://app.example.com:$PORT/cb",
				"https://<your-domain>/cb", "https://{{.Host}}/cb", "https://${{ secrets.HOST }}/cb", "https://app.example.com/{realm}/cb", "com.example.<app>:/cb",
			},
			[]string{"https://app.example.com/%7B", "https://app.example.com/$metadata"}),
		inLine2("redirect_uri_joined", "",
			[]string{
				"https://a.example.com/cbhttps://b.example.com/cb", "https://a.example.com/;", "https://a.example.com/;https://b.example/",
				"https://a.example.com/,https://b.example.com/", "https://a.example.com/,", "https://a.example/,com.example.app:/cb",
				"https://a.example.com/cb|https://b.example.com/cb", "https://a.example.com/|", "https://a.example/|com.example.app:/cb",
			},
			[]string{
				"https://a.example.com/?to=https://b.example.com/", "https://a.example.com/cb,1;v=2", "https://a.example.com/?a=b,c;",
				good, "https://app.example.com/callback/", // Twice, as once.
			}),
		inLine2("redirect_uri_http", "",
			[]string{
				"http://app.example.com/", "http://192.0.2.1:8080/", "http://127.0.0.1.example.com/", "http://localhost.example.com/",
				"http://127.0.0.1@app.example.com/", "http://[2001:db8::1]/", "http://notlocalhost/",
			},
			[]string{
				"http://127.0.0.1/", "http://127.0.0.1:51004/a", "http://[::1]:61023/a", "http://127.1.2.3/", "http://user@127.0.0.1/",
				"http://localhost/", "http://localhost:3000/callback", "http://localhost./", "http://app.localhost:8080/",
			}),
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
