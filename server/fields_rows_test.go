package server_test

import (
	"encoding/json"
	"regexp"
	"strings"
)

// The rows follow the tables in sections 2.1 and 2.2 of the reference, in order.

func oauth2Fields() []field {
	return []field{
		nameField(),
		uuidField(field{name: "authentication_flow", nullable: true}),
		uuidField(field{name: "authorization_flow", required: true}),
		uuidListField("property_mappings"),
		enumField("client_type", "confidential", "public"),
		textField(field{
			name: "client_id", absent: matching(`^[0-9A-Za-z]{40}$`),
			accepts: []any{"a", strings.Repeat("🔑", 255), "b c", "A", "a"[:1] + "\n"},
			refuses: []refusal{{value: "", code: "empty"}, {value: strings.Repeat("ü", 256), code: "too_long"}},
		}),
		textField(field{
			name: "client_secret", absent: matching(`^[0-9A-Za-z]{128}$`),
			accepts: []any{"", " ", strings.Repeat("🔑", 255), "<&>\u2028\t"},
			refuses: []refusal{{value: strings.Repeat("ü", 256), code: "too_long"}},
		}),
		durationField("access_code_validity", "minutes=1"),
		durationField("access_token_validity", "hours=1"),
		durationField("refresh_token_validity", "days=30"),
		booleanField("include_claims_in_id_token", true),
		uuidField(field{name: "signing_key", nullable: true}),
		redirectURIsField(),
		enumField("sub_mode",
			"hashed_user_id", "user_id", "user_uuid", "user_username", "user_email", "user_upn"),
		enumField("issuer_mode", "per_provider", "global"),
		uuidListField("jwks_sources"),
	}
}

func workspaceDirectoryFields() []field {
	return []field{
		nameField(),
		uuidListField("property_mappings"),
		uuidListField("property_mappings_group"),
		emailField(),
		credentialsField(),
		textField(field{
			name: "scopes", absent: "", accepts: []any{"a", "a b", " "}, refuses: []refusal{{value: "", code: "empty"}},
		}),
		booleanField("exclude_users_service_account", false),
		uuidField(field{name: "filter_group", nullable: true}),
		enumField("user_delete_action", "do_nothing", "delete", "suspend"),
		enumField("group_delete_action", "do_nothing", "delete", "suspend"),
		textField(field{
			name: "default_group_email_domain", required: true, accepts: []any{"example.com", "x", " "},
			refuses: []refusal{{value: "", code: "empty"}},
		}),
	}
}

func matching(pattern string) func(any) bool {
	expression := regexp.MustCompile(pattern)
	return func(value any) bool {
		text, ok := value.(string)
		return ok && expression.MatchString(text)
	}
}

// wrongTypes returns values of every JSON type except the field's own.
func wrongTypes(own string) []refusal {
	var refusals []refusal
	for name, value := range map[string]any{
		"string": "x", "number": 5, "boolean": true, "list": []any{}, "object": map[string]any{},
	} {
		if name != own {
			refusals = append(refusals, refusal{value: value, code: "type"})
		}
	}
	return refusals
}

// textField adds values that every string field refuses.
func textField(row field) field {
	row.refuses = append(append(row.refuses, wrongTypes("string")...),
		refusal{value: "a\x00b", code: "nul"}, refusal{value: "\x00", code: "nul"})
	return row
}

func nameField() field {
	return textField(field{
		name: "name", required: true,
		accepts: []any{"a", " a ", "\n.", strings.Repeat("é", 5000), "\u00a0a", "\u2003"},
		refuses: []refusal{
			{value: "", code: "empty"},
			{value: " ", code: "blank"},
			{value: "\t\n\f\r \v\u0085\u00a0", code: "blank"},
			{value: " \x00", code: "nul"},
		},
	})
}

func uuidField(row field) field {
	row.accepts, row.acceptsAs, row.refuses = uuidValues()
	row.refuses = append(row.refuses, wrongTypes("string")...)
	return row
}

func uuidValues() (accepts []any, acceptsAs [][2]any, refuses []refusal) {
	accepts = []any{
		flow, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-f74b-0cce-b302099a8057",
	}
	acceptsAs = [][2]any{{"3F6E1C1A-5A0F-4D3C-9A54-6B8C2F7D9E01", flow}}
	for _, wrong := range []string{
		"", "x", "3f6e1c1a5a0f4d3c9a546b8c2f7d9e01", "{" + flow + "}", "urn:uuid:" + flow, flow + " ", " " + flow, flow + "0",
		flow[1:], "3f6e1c1a-5a0f-4d3c-9a546b8c-2f7d9e01", "gf6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", flow + "\n", flow + "\x00",
	} {
		refuses = append(refuses, refusal{value: wrong, code: "invalid_uuid"})
	}
	return accepts, acceptsAs, refuses
}

func uuidListField(name string) field {
	other := "9b2d7a44-1c8e-4f0b-8d36-0a5e7c3f1b92"
	row := field{
		name: name, absent: []any{},
		accepts:   []any{[]any{}, []any{other, flow, other}},
		acceptsAs: [][2]any{{[]any{strings.ToUpper(flow)}, []any{flow}}},
		refuses:   wrongTypes("list"),
	}
	_, _, wrong := uuidValues()
	for _, value := range wrong {
		row.refuses = append(row.refuses, refusal{value: []any{flow, value.value}, code: value.code, pointer: "/1"})
	}
	row.refuses = append(row.refuses,
		refusal{value: []any{nil}, code: "null", pointer: "/0"}, refusal{value: []any{5}, code: "type", pointer: "/0"},
		refusal{value: []any{[]any{flow}}, code: "type", pointer: "/0"})
	return row
}

func enumField(name string, values ...string) field {
	row := field{name: name, absent: values[0], refuses: wrongTypes("string")}
	for _, value := range values {
		row.accepts = append(row.accepts, value)
		row.refuses = append(row.refuses,
			refusal{value: strings.ToUpper(value), code: "enum"}, refusal{value: value + " ", code: "enum"})
	}
	row.refuses = append(row.refuses, refusal{value: "", code: "enum"}, refusal{value: "\x00", code: "enum"})
	return row
}

func booleanField(name string, byDefault bool) field {
	row := field{name: name, absent: byDefault, accepts: []any{true, false}, refuses: wrongTypes("boolean")}
	row.refuses = append(row.refuses, refusal{value: "true", code: "type"}, refusal{value: 1, code: "type"})
	return row
}

func durationField(name, byDefault string) field {
	row := field{
		name: name, absent: byDefault,
		accepts: []any{
			"hours=1;minutes=2;seconds=3", "weeks=0", "days=000000001", "microseconds=999999999.999999999", "milliseconds=0.5",
			"minutes=1;minutes=1",
		},
		refuses: append(wrongTypes("string"), refusal{value: "", code: "empty"}),
	}
	for _, wrong := range []string{
		"1", "hours", "hours=", "=1", "hours=1;", ";hours=1", "hours=1;;minutes=1", "hours=1,minutes=2", "hours = 1",
		" hours=1", "hours=1 ", "hours=-1", "hours=+1", "Hours=1", "hour=1", "years=1", "months=1", "hours=1e3", "hours=.5",
		"hours=1.", "hours=1234567890", "hours=1.1234567890", "hours=1.2.3", "hours=١", "hours=1\n", "hours=1\x00",
	} {
		row.refuses = append(row.refuses, refusal{value: wrong, code: "invalid_duration"})
	}
	return row
}

func redirectURIsField() field {
	row := field{
		name: "redirect_uris", absent: "",
		accepts: []any{
			"", "https://example.com", "https://example.com\n", "https://example.com\r\n",
			"https://a.example.com/?x=1&y=2\nhttps://b.example.com:8443/\r\ncom.example.app:/callback", "a:b", "a+b-c.1:x",
			"https://exämple.com/ü", "urn:ietf:wg:oauth:2.0:oob", "http://*.example.com/", "javascripts:x", "dat:a",
			"https://example.com/" + strings.Repeat("x", 10000),
		},
		refuses: wrongTypes("string"),
	}
	for _, wrong := range []string{
		"\n", "\r\n", "\n\n", "https://example.com\n\n", "\nhttps://example.com", "https://a\n\nhttps://b", "https://a\rhttps://b",
		"https://a\r", "example.com", "https:", ":x", "1a:x", "/callback", "https://a b", " https://a", "https://a ", "https://a\tb",
		"https://a#b", "https://a\x7f", "https://a\x00", "https://a\u0085", "https://a\u00a0", "https://a\u2028b", "a_b:c",
		"javascript:alert(1)", "JavaScript:x", "data:text/html,x", "DATA:x", "vbscript:x", "VBScript:x",
		"https://a\njavascript:x", "https://a\r\ndata:x",
	} {
		row.refuses = append(row.refuses, refusal{value: wrong, code: "invalid_uri"})
	}
	return row
}

func emailField() field {
	row := field{
		name: "delegated_subject", required: true,
		accepts: []any{
			"admin@example.com", "a@b", "First.Last+tag@EXAMPLE.com", "!#$%&'*+/=?^_`{|}~-@example.com", "a@1.2", "a@x-y.z9",
			"a@" + strings.Repeat("b", 63) + ".com", strings.Repeat("a", 242) + "@example.com",
		},
		refuses: append(wrongTypes("string"), refusal{value: "", code: "empty"},
			refusal{value: strings.Repeat("a", 243) + "@example.com", code: "too_long"}),
	}
	for _, wrong := range []string{
		"x", "@example.com", "a@", "a@@b", "a@b@c", ".a@b", "a.@b", "a..b@c", "a@.b", "a@b.", "a@b..c", "a@-b", "a@b-", "a@b_c",
		`"a"@b`, "a@[127.0.0.1]", "a b@c", " a@b", "a@b ", "a@b\n", "a@b\x00", "ä@example.com", "a@exämple.com",
		"Admin <admin@example.com>", "a@b,c@d", "a@" + strings.Repeat("b", 64) + ".com",
	} {
		row.refuses = append(row.refuses, refusal{value: wrong, code: "invalid_email"})
	}
	return row
}

func credentialsField() field {
	return field{
		name: "credentials", required: true,
		accepts: []any{
			map[string]any{},
			map[string]any{"a": nil, "": []any{1, "x", map[string]any{"b": false}}},
			map[string]any{"type": "service_account", "private_key": "-----BEGIN\n<&>\u2028"},
			json.RawMessage(`{"a":9007199254740993,"b":123456789012345678901234567890,"c":1.10,"d":1e400,"e":-0,"f":1E+2}`),
		},
		refuses: wrongTypes("object"),
	}
}
