package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/gen/model"
)

// field is a row of the reference's tables: what a request may and may not contain in a field.
type field struct {
	name string
	// required is true if there is no default; otherwise absent is the default, or a pattern for it.
	required bool
	absent   any
	// nullable is true if null is accepted and returned as null.
	nullable bool
	// accepts has values that are returned unchanged; acceptsAs has others.
	accepts   []any
	acceptsAs [][2]any
	refuses   []refusal
}

// refusal is a value and the only entry that it gets.
type refusal struct {
	value   any
	code    string
	pointer string // under the field's own, "" for the field itself
}

// fieldCase is a body that differs from the smallest one in one field.
type fieldCase struct {
	path, field, title string
	body               map[string]any
	// want is the field of the record. If wantEntry is not empty, it is the only entry of the refusal.
	want      any
	wantEntry string
}

func (f field) cases(path string) (cases []fieldCase) {
	add := func(title string, value, want any, entry string) {
		cases = append(cases, fieldCase{path, f.name, title, with(minimal(path), f.name, value), want, entry})
	}
	add("absent", nil, f.absent, map[bool]string{true: "/" + f.name + " required"}[f.required])
	delete(cases[0].body, f.name)
	add("null", nil, nil, map[bool]string{false: "/" + f.name + " null"}[f.nullable])
	for i, value := range f.accepts {
		add(fmt.Sprintf("accepts %d", i), value, value, "")
	}
	for i, pair := range f.acceptsAs {
		add(fmt.Sprintf("accepts as %d", i), pair[0], pair[1], "")
	}
	for i, wrong := range f.refuses {
		add(fmt.Sprintf("refuses %d %s", i, wrong.code), wrong.value, nil, "/"+f.name+wrong.pointer+" "+wrong.code)
	}
	return cases
}

// check returns what is wrong with the response; nil if nothing is.
func (c fieldCase) check(t testing.TB, got answer) error {
	t.Helper()
	if c.wantEntry != "" {
		if list := violations(got.problem(t, http.StatusBadRequest, "validation-failed")); !slices.Equal(list, []string{c.wantEntry}) {
			return fmt.Errorf("status is %d, entries are %q, want %q", got.status, list, c.wantEntry)
		}
		return nil
	}
	if got.status != http.StatusCreated {
		return fmt.Errorf("status is %d, want 201: %s", got.status, got.body)
	}
	value := got.record(t)[c.field]
	text, _ := value.(string)
	pattern, isPattern := c.want.(*regexp.Regexp)
	if isPattern && !pattern.MatchString(text) || !isPattern && !reflect.DeepEqual(value, roundTrip(t, c.want)) {
		return fmt.Errorf("returned as %v, want %v", value, c.want)
	}
	return nil
}

// allFieldCases returns the cases of every field, and of unknown fields.
func allFieldCases() (cases []fieldCase) {
	for path, rows := range map[string][]field{oauth2Path: oauth2Fields(), workspaceDirectoryPath: workspaceDirectoryFields()} {
		for _, row := range rows {
			cases = append(cases, row.cases(path)...)
		}
		for _, name := range []string{"pk", "Name", "component", "x"} {
			cases = append(cases, fieldCase{path, "", name, with(minimal(path), name, "x"), nil, "/" + name + " unknown_field"})
		}
	}
	return cases
}

// What Validate says of each body before it is sent is what the response to it says.
func TestFields(t *testing.T) {
	t.Parallel()
	h, document := start(t), load(t)
	operations := map[string]string{oauth2Path: oauth2Operation, workspaceDirectoryPath: workspaceDirectoryOperation}
	for _, test := range allFieldCases() {
		t.Run(strings.Join([]string{test.path, test.field, test.title}, " "), func(t *testing.T) {
			t.Parallel()
			body := encode(t, test.body)
			got := h.post(t, test.path, body)
			if err := test.check(t, got); err != nil {
				t.Error(err)
			}
			var answered []model.Violation
			if got.status == http.StatusBadRequest {
				answered = *got.problem(t, http.StatusBadRequest, "validation-failed").Errors
			}
			foreseen, err := document.Validate(t.Context(), operations[test.path], []byte(body))
			if err != nil || encode(t, foreseen) != encode(t, answered) {
				t.Errorf("foreseen is %v, %v, answered %v", foreseen, err, answered)
			}
		})
	}
}

// The rows follow the tables in sections 2.1 and 2.2 of the reference, in order.

func oauth2Fields() []field {
	return []field{
		nameField(),
		uuidField(field{name: "authentication_flow", nullable: true}),
		uuidField(field{name: "authorization_flow", required: true}),
		uuidListField("property_mappings"),
		enumField("client_type", "confidential", "public"),
		textField(field{
			name: "client_id", absent: regexp.MustCompile(`^[0-9A-Za-z]{40}$`),
			accepts: []any{"a", strings.Repeat("🔑", 255), "b c", "A", "a\n"},
			refuses: append(refused("empty", ""), refused("too_long", strings.Repeat("ü", 256))...),
		}),
		textField(field{
			name: "client_secret", absent: regexp.MustCompile(`^[0-9A-Za-z]{128}$`),
			accepts: []any{"", " ", strings.Repeat("🔑", 255), "<&>\u2028\t"},
			refuses: refused("too_long", strings.Repeat("ü", 256)),
		}),
		durationField("access_code_validity", "minutes=1"),
		durationField("access_token_validity", "hours=1"),
		durationField("refresh_token_validity", "days=30"),
		booleanField("include_claims_in_id_token", true),
		uuidField(field{name: "signing_key", nullable: true}),
		{
			name: "redirect_uris", absent: "",
			accepts: []any{
				"", "https://example.com", "https://example.com\n", "https://example.com\r\n",
				"https://a.example.com/?x=1&y=2\nhttps://b.example.com:8443/\r\ncom.example.app:/callback", "a:b", "a+b-c.1:x",
				"https://exämple.com/ü", "urn:ietf:wg:oauth:2.0:oob", "http://*.example.com/", "javascripts:x", "dat:a",
				"https://example.com/" + strings.Repeat("x", 10000),
			},
			refuses: append(wrongTypes("string"), refused("invalid_uri",
				"\n", "\r\n", "\n\n", "https://example.com\n\n", "\nhttps://example.com", "https://a\n\nhttps://b", "https://a\rhttps://b",
				"https://a\r", "example.com", "https:", ":x", "1a:x", "/callback", "https://a b", " https://a", "https://a ", "https://a\tb",
				"https://a#b", "https://a\x7f", "https://a\x00", "https://a\u0085", "https://a\u00a0", "https://a\u2028b",
				"https://a/\u2013", "https://a/\u200b", "https://a\u3000", "a_b:c",
				"javascript:alert(1)", "JavaScript:x", "data:text/html,x", "DATA:x", "vbscript:x", "VBScript:x",
				"https://a\njavascript:x", "https://a\r\ndata:x")...),
		},
		enumField("sub_mode", "hashed_user_id", "user_id", "user_uuid", "user_username", "user_email", "user_upn"),
		enumField("issuer_mode", "per_provider", "global"),
		uuidListField("jwks_sources"),
	}
}

func workspaceDirectoryFields() []field {
	return []field{
		nameField(),
		uuidListField("property_mappings"),
		uuidListField("property_mappings_group"),
		{
			name: "delegated_subject", required: true,
			accepts: []any{
				"admin@example.com", "a@b", "First.Last+tag@EXAMPLE.com", "!#$%&'*+/=?^_`{|}~-@example.com", "a@1.2", "a@x-y.z9",
				"a@" + strings.Repeat("b", 63) + ".com", strings.Repeat("a", 242) + "@example.com",
			},
			refuses: slices.Concat(wrongTypes("string"), refused("empty", ""),
				refused("too_long", strings.Repeat("a", 243)+"@example.com"), refused("invalid_email",
					"x", "@example.com", "a@", "a@@b", "a@b@c", ".a@b", "a.@b", "a..b@c", "a@.b", "a@b.", "a@b..c", "a@-b", "a@b-", "a@b_c",
					`"a"@b`, "a@[127.0.0.1]", "a b@c", " a@b", "a@b ", "a@b\n", "a@b\x00", "ä@example.com", "a@exämple.com",
					"Admin <admin@example.com>", "a@b,c@d", "a@"+strings.Repeat("b", 64)+".com")),
		},
		{
			name: "credentials", required: true,
			accepts: []any{
				map[string]any{},
				map[string]any{"a": nil, "": []any{1, "x", map[string]any{"b": false}}},
				map[string]any{"type": "service_account", "private_key": "-----BEGIN\n<&>\u2028"},
				json.RawMessage(`{"a":9007199254740993,"b":123456789012345678901234567890,"c":1.10,"d":1e400,"e":-0,"f":1E+2}`),
			},
			refuses: wrongTypes("object"),
		},
		textField(field{name: "scopes", absent: "", accepts: []any{"a", "a b", " "}, refuses: refused("empty", "")}),
		booleanField("exclude_users_service_account", false),
		uuidField(field{name: "filter_group", nullable: true}),
		enumField("user_delete_action", "do_nothing", "delete", "suspend"),
		enumField("group_delete_action", "do_nothing", "delete", "suspend"),
		textField(field{
			name: "default_group_email_domain", required: true, accepts: []any{"example.com", "x", " "},
			refuses: refused("empty", ""),
		}),
	}
}

func refused(code string, values ...any) (refusals []refusal) {
	for _, value := range values {
		refusals = append(refusals, refusal{value: value, code: code})
	}
	return refusals
}

// wrongTypes refuses values of every JSON type except the field's own.
func wrongTypes(own string) (refusals []refusal) {
	for name, value := range map[string]any{
		"string": "x", "number": 5, "boolean": true, "list": []any{}, "object": map[string]any{},
	} {
		if name != own {
			refusals = append(refusals, refused("type", value)...)
		}
	}
	return refusals
}

// textField adds values that every string field refuses.
func textField(row field) field {
	row.refuses = slices.Concat(row.refuses, wrongTypes("string"), refused("nul", "a\x00b", "\x00"))
	return row
}

func nameField() field {
	return textField(field{
		name: "name", required: true,
		accepts: []any{"a", " a ", "\n.", strings.Repeat("é", 5000), "\u00a0a", "\ufeff.", "\u200b\u0301", "\u2764\ufe0f", "👩\u200d💻"},
		refuses: slices.Concat(refused("empty", ""), refused("nul", " \x00", "\u200b\x00"), refused("blank", " ", "\x7f",
			"\x1b", "\t\n\f\r \v\u0085\u00a0", "\u2003", "\ufeff", "\u200b \u200d", "\u00ad", "\u2060\u202e", "\u3164", "\u2800", "\ufe0f", "\U000e0041")),
	})
}

func uuidField(row field) field {
	row.accepts = []any{
		flow, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"01890a5d-ac96-774b-bcce-b302099a8057", "01890a5d-ac96-f74b-0cce-b302099a8057",
	}
	row.acceptsAs = [][2]any{{strings.ToUpper(flow), flow}}
	row.refuses = append(wrongUUIDs(), wrongTypes("string")...)
	return row
}

func wrongUUIDs() []refusal {
	return refused("invalid_uuid",
		"", "x", "3f6e1c1a5a0f4d3c9a546b8c2f7d9e01", "{"+flow+"}", "urn:uuid:"+flow, flow+" ", " "+flow, flow+"0",
		flow[1:], "3f6e1c1a-5a0f-4d3c-9a546b8c-2f7d9e01", "gf6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01", flow+"\n", flow+"\x00")
}

func uuidListField(name string) field {
	row := field{
		name: name, absent: []any{},
		accepts:   []any{[]any{}, []any{"9b2d7a44-1c8e-4f0b-8d36-0a5e7c3f1b92", flow, "9b2d7a44-1c8e-4f0b-8d36-0a5e7c3f1b92"}},
		acceptsAs: [][2]any{{[]any{strings.ToUpper(flow)}, []any{flow}}},
		refuses: append(wrongTypes("list"),
			refusal{[]any{nil}, "null", "/0"}, refusal{[]any{5}, "type", "/0"}, refusal{[]any{[]any{flow}}, "type", "/0"}),
	}
	for _, wrong := range wrongUUIDs() {
		row.refuses = append(row.refuses, refusal{[]any{flow, wrong.value}, wrong.code, "/1"})
	}
	return row
}

func enumField(name string, values ...string) field {
	row := field{name: name, absent: values[0], refuses: append(wrongTypes("string"), refused("enum", "", "\x00")...)}
	for _, value := range values {
		row.accepts = append(row.accepts, value)
		row.refuses = append(row.refuses, refused("enum", strings.ToUpper(value), value+" ")...)
	}
	return row
}

func booleanField(name string, byDefault bool) field {
	refuses := append(wrongTypes("boolean"), refused("type", "true", 1)...)
	return field{name: name, absent: byDefault, accepts: []any{true, false}, refuses: refuses}
}

func durationField(name, byDefault string) field {
	return field{
		name: name, absent: byDefault,
		accepts: []any{
			"hours=1;minutes=2;seconds=3", "weeks=0", "days=000000001", "microseconds=999999999.999999999", "milliseconds=0.5",
			"minutes=1;minutes=1",
		},
		refuses: slices.Concat(wrongTypes("string"), refused("empty", ""), refused("invalid_duration",
			"1", "hours", "hours=", "=1", "hours=1;", ";hours=1", "hours=1;;minutes=1", "hours=1,minutes=2", "hours = 1",
			" hours=1", "hours=1 ", "hours=-1", "hours=+1", "Hours=1", "hour=1", "years=1", "months=1", "hours=1e3", "hours=.5",
			"hours=1.", "hours=1234567890", "hours=1.1234567890", "hours=1.2.3", "hours=١", "hours=1\n", "hours=1\x00")),
	}
}
