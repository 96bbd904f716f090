package advice

import "strings"

// Example is a part of a request that gets the advice of a rule, Bad, and one that does not, Good.
type Example struct{ Bad, Good string }

// Example returns the example of a rule, for the page that lists the rules.
//
//nolint:funlen // A table is as long as its rows are many.
func (r Rule) Example() Example {
	const (
		none = "00000000-0000-0000-0000-000000000000"
		some = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"

		onTwoLines = `"redirect_uris": "https://app.example.com/a\nhttps://app.example.com/b"`

		public = `"client_type": "public"`
		// account has the key of RFC 8410, section 10.3, which is short.
		account = `{"type": "service_account", "client_email": "sync@project.example.com", ` +
			`"token_uri": "https://oauth2.example.com/token", ` +
			`"private_key": "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC` +
			`\n-----END PRIVATE KEY-----\n"}`
		randomSecret = `"client_secret": "Zt4vQy8LmN1xRw6KpJ3sHd9Fb2Cg7TuE"`
	)
	field := `"` + strings.TrimPrefix(r.Pointer, "/") + `": `
	anywhere := map[string]Example{
		"value_padded":         {field + `"` + "office " + `"`, field + `"office"`},
		"reference_unresolved": {field + `"${CLIENT}"`, field + `"office"`},
		"validity_zero":        {field + `"seconds=0"`, field + `"hours=1"`},
		"validity_unit_twice":  {field + `"hours=1;hours=2"`, field + `"hours=3"`},
	}
	if example, ok := anywhere[r.Code]; ok {
		return example
	}
	return map[string]Example{
		"/authentication_flow " + nilUUID: {`"authentication_flow": "` + none + `"`, `"authentication_flow": "` + some + `"`},
		"/authorization_flow " + nilUUID:  {`"authorization_flow": "` + none + `"`, `"authorization_flow": "` + some + `"`},
		"/signing_key " + nilUUID:         {`"signing_key": "` + none + `"`, `"signing_key": "` + some + `"`},
		"/filter_group " + nilUUID:        {`"filter_group": "` + none + `"`, `"filter_group": "` + some + `"`},
		"/client_type native_app_confidential": {
			`"client_type": "confidential", "redirect_uris": "com.example.app:/callback"`,
			public + `, "redirect_uris": "com.example.app:/callback"`,
		},
		"/client_id client_id_unprintable": {`"client_id": "büro"`, `"client_id": "office"`},
		"/client_secret client_secret_unprintable": {
			`"client_secret": "pässword-of-more-than-32-characters"`, `"client_secret": "password-of-more-than-32-characters"`,
		},
		"/client_secret client_secret_needless": {
			public + `, "client_secret": "not-secret"`, public,
		},
		"/client_secret client_secret_empty": {
			`"client_type": "confidential", "client_secret": ""`, `"client_type": "confidential"`,
		},
		"/client_secret client_secret_short": {
			`"client_secret": "secret"`, randomSecret,
		},
		"/client_secret client_secret_short_for_hs256": {
			`"client_secret": "Zt4vQy8LmN1xRw6KpJ3sHd9F"`, randomSecret,
		},
		"/client_secret client_secret_repetitive": {
			`"client_secret": "abcabcabcabcabcabcabcabcabcabcabc"`, randomSecret,
		},
		"/access_code_validity access_code_long_lived": {
			`"access_code_validity": "hours=1"`, `"access_code_validity": "minutes=1"`,
		},
		"/access_token_validity access_token_long_lived": {
			`"access_token_validity": "weeks=1"`, `"access_token_validity": "hours=1"`,
		},
		"/refresh_token_validity refresh_token_long_lived": {
			`"refresh_token_validity": "weeks=500"`, `"refresh_token_validity": "days=30"`,
		},
		"/signing_key signing_key_missing": {
			public, public + `, "signing_key": "` + some + `"`,
		},
		"/redirect_uris redirect_uris_missing": {
			public, public + `, "redirect_uris": "https://app.example.com/callback"`,
		},
		"/redirect_uris redirect_uri_malformed": {
			`"redirect_uris": "https:app.example.com/callback"`, `"redirect_uris": "https://app.example.com/callback"`,
		},
		"/client_secret client_secret_digest": {`"client_secret": "$2a$10$abcdefghijklmnopqrstuv"`, randomSecret},
		"/redirect_uris redirect_uri_backslash": {
			`"redirect_uris": "https://app.example.com/a\\nhttps://app.example.com/b"`,
			onTwoLines,
		},
		"/redirect_uris redirect_uri_placeholder": {
			`"redirect_uris": "http://127.0.0.1:<port>/callback"`, `"redirect_uris": "http://127.0.0.1:8765/callback"`,
		},
		"/redirect_uris redirect_uri_joined": {
			`"redirect_uris": "https://app.example.com/ahttps://app.example.com/b"`,
			onTwoLines,
		},
		"/credentials credentials_empty":  {`"credentials": {}`, `"credentials": ` + account},
		"/credentials credentials_nested": {`"credentials": {"key": ` + account + "}", `"credentials": ` + account},
		"/default_group_email_domain domain_malformed": {
			`"default_group_email_domain": "@example.com"`, `"default_group_email_domain": "example.com"`,
		},
		"/redirect_uris redirect_uri_http": {
			`"redirect_uris": "http://app.example.com/callback"`, `"redirect_uris": "https://app.example.com/callback"`,
		},
		"/redirect_uris redirect_uri_localhost": {
			`"redirect_uris": "http://localhost:8765/callback"`, `"redirect_uris": "http://127.0.0.1:8765/callback"`,
		},
		"/redirect_uris redirect_uri_wildcard": {
			`"redirect_uris": "https://*.example.com/callback"`,
			`"redirect_uris": "https://app.example.com/callback\nhttps://www.example.com/callback"`,
		},
		"/redirect_uris redirect_uri_comma": {
			`"redirect_uris": "https://app.example.com/a,https://app.example.com/b"`,
			onTwoLines,
		},
		"/redirect_uris redirect_uri_twice": {
			`"redirect_uris": "https://app.example.com/a\nhttps://app.example.com/a"`,
			onTwoLines,
		},
		"/redirect_uris redirect_uri_scheme_without_dot": {
			public + `, "redirect_uris": "myapp:/callback"`,
			public + `, "redirect_uris": "com.example.app:/callback"`,
		},
		"/sub_mode sub_mode_reassignable": {`"sub_mode": "user_email"`, `"sub_mode": "hashed_user_id"`},
		"/delegated_subject delegated_subject_service_account": {
			`"delegated_subject": "sync@project.example.com", "credentials": ` + account,
			`"delegated_subject": "admin@example.com", "credentials": ` + account,
		},
		"/delegated_subject delegated_subject_other_domain": {
			`"delegated_subject": "admin@example.com", "default_group_email_domain": "example.org"`,
			`"delegated_subject": "admin@example.com", "default_group_email_domain": "example.com"`,
		},
		"/credentials credentials_incomplete": {`"credentials": {"type": "service_account"}`, `"credentials": ` + account},
		"/credentials credentials_key_unusable": {
			`"credentials": ` + strings.ReplaceAll(account, `\n`, " "), `"credentials": ` + account,
		},
		"/credentials credentials_oauth_client": {
			`"credentials": {"installed": {"client_id": "shop"}}`, `"credentials": ` + account,
		},
		"/credentials credentials_json_string": {
			`"credentials": {"json": "{\"key\": \"example\"}"}`, `"credentials": {"key": "example"}`,
		},
		"/scopes scopes_incomplete": {
			`"scopes": "` + userScope + `"`, `"scopes": "` + userScope + " " + groupScope + `"`,
		},
		"/user_delete_action delete_action_destructive": {
			`"user_delete_action": "delete"`, `"user_delete_action": "suspend"`,
		},
		"/group_delete_action delete_action_destructive": {
			`"group_delete_action": "delete"`, `"group_delete_action": "do_nothing"`,
		},
	}[r.Pointer+" "+r.Code]
}
