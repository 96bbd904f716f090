package contract_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/storetest/processtest"
)

// TestBoundRequestIsTheBody binds bodies with any of the fields of the contract. The requests must be those that
// encoding/json reads from the same bodies.
func TestBoundRequestIsTheBody(t *testing.T) {
	t.Parallel()
	document, err := contract.Load(t.Context())
	processtest.Must(t, err)
	bound := map[string]bool{}
	for id, newRequest := range map[string]func() any{
		"providers_oauth2_create":              func() any { return new(model.OAuth2ProviderRequest) },
		"providers_workspace_directory_create": func() any { return new(model.WorkspaceDirectoryProviderRequest) },
	} {
		op, _ := document.Operation(id)
		schema := document.RequestSchema(id)
		rapid.Check(t, func(t *rapid.T) {
			members := map[string]any{}
			for _, name := range op.FieldNames() {
				property := schema.Properties[name].Value
				switch {
				case property.Nullable && rapid.Bool().Draw(t, name+" is null"):
					members[name] = nil
				case rapid.Bool().Draw(t, name+" is sent"):
					members[name] = valueOf(t, property)
				}
			}
			// Duplicate names are refused before a body is bound.
			body, err := json.Marshal(members)
			processtest.Must(t, err)
			want, got := newRequest(), newRequest()
			processtest.Must(t, json.Unmarshal(body, want))
			sent, err := op.Read(body)
			processtest.Must(t, err, sent.Bind(got))
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s is bound as %+v, want %+v", body, got, want)
			}
			for name := range members {
				bound[id+" "+name] = true
			}
		})
		for _, name := range op.FieldNames() {
			if !bound[id+" "+name] {
				t.Errorf("%s was never bound", name)
			}
		}
	}
}

// valueOf returns a value of the type of a property.
func valueOf(t *rapid.T, property *openapi3.Schema) any {
	switch {
	case property.Type.Is(openapi3.TypeBoolean):
		return rapid.Bool().Draw(t, "boolean")
	case property.Type.Is(openapi3.TypeArray):
		return rapid.SliceOf(rapid.StringMatching(property.Items.Value.Pattern)).Draw(t, "list")
	case property.Type.Is(openapi3.TypeObject):
		return rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "object")
	case property.Format == "uuid":
		return rapid.StringMatching(property.Pattern).Draw(t, "id")
	case len(property.Enum) > 0:
		return fmt.Sprint(rapid.SampledFrom(property.Enum).Draw(t, "value"))
	default:
		return rapid.String().Draw(t, "string")
	}
}
