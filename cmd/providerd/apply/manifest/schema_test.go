package manifest_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"example.com/providerd/cmd/providerd/apply/manifest"
	"example.com/providerd/gen/contract"
	"example.com/providerd/store/storetest/processtest"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text := processtest.Try(manifest.Schema(kinds(t))).Must(t)
	document := processtest.Try(jsonschema.UnmarshalJSON(bytes.NewReader(text))).Must(t)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiler.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
		// Go writes what ECMA 262 writes as \uXXXX in another way.
		return regexp.Compile(regexp.MustCompile(`\\u([0-9A-F]{4})`).ReplaceAllString(pattern, `\x{$1}`))
	})
	processtest.Must(t, compiler.AddResource("providers.schema.json", document))
	return processtest.Try(compiler.Compile("providers.schema.json")).Must(t)
}

func TestSchemaTellsGoodFromBad(t *testing.T) {
	t.Parallel()
	schema := compileSchema(t)
	document := processtest.Try(openapi3.NewLoader().LoadFromData(contract.YAML())).Must(t)
	count := 0
	for _, kind := range []string{"oauth2", "workspace_directory"} {
		body := document.Paths.Value("/providers/" + kind + "/").Post.RequestBody.Value.Content["application/json"]
		for name, example := range body.Examples {
			processtest.CheckAs(t, schema.Validate(map[string]any{kind: []any{example.Value.Value}}), "%s %s", kind, name)
			count++
		}
	}
	processtest.Equal(t, count, 4, "examples in the contract")
	const flow = `"authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"`
	for text, valid := range map[string]bool{
		`{}`:             true,
		`{"x-any": [1]}`: true,
		`{"oauth2": [], "workspace_directory": []}`:                                       true,
		`{"oauth2": [{"id": "a", "name": "b", ` + flow + `}]}`:                            true,
		`{"oauth2": [{"name": "${NAME}", "authorization_flow": "${FLOW}"}]}`:              true,
		`{"oauth2": [{"name": "a", ` + flow + `, "include_claims_in_id_token": "${A}"}]}`: true,
		`{"oauth2": [{"name": "a", ` + flow + `, "property_mappings": ["${A}"]}]}`:        true,
		`{"oauth2": [{"name": "a", ` + flow + `, "property_mappings": "${A}"}]}`:          true,
		`{"oauth2": [{"name": "a", ` + flow + `, "signing_key": null}]}`:                  true,
		`{"oauth2": [{"name": "a", ` + flow + `, "redirect_uris": "a:b\nc:d"}]}`:          true,
		`{"saml": []}`:                                                                false,
		`{"oauth2": {}}`:                                                              false,
		`{"oauth2": null}`:                                                            false,
		`{"oauth2": [{"name": "a"}]}`:                                                 false,
		`{"oauth2": [{"name": "", ` + flow + `}]}`:                                    false,
		`{"oauth2": [{"id": 7, "name": "a", ` + flow + `}]}`:                          false,
		`{"oauth2": [{"name": "a", ` + flow + `, "bogus": 1}]}`:                       false,
		`{"oauth2": [{"name": "a", ` + flow + `, "client_type": "secret"}]}`:          false,
		`{"oauth2": [{"name": "a", ` + flow + `, "client_secret": null}]}`:            false,
		`{"oauth2": [{"name": "a", ` + flow + `, "property_mappings": ["x"]}]}`:       false,
		`{"oauth2": [{"name": "a", ` + flow + `, "redirect_uris": "javascript:x"}]}`:  false,
		`{"oauth2": [{"name": "a", ` + flow + `, "access_code_validity": "1 hour"}]}`: false,
		`{"oauth2": [{"name": "a", "authorization_flow": "$FLOW"}]}`:                  false,
	} {
		var value any
		processtest.Must(t, json.Unmarshal([]byte(text), &value))
		if err := schema.Validate(value); (err == nil) != valid {
			t.Errorf("%s: %v, want valid to be %t", text, err, valid)
		}
	}
}
