package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Schema returns the JSON Schema of a manifest, in draft 7, which editors support best.
func Schema(kinds []Kind) ([]byte, error) {
	lists := map[string]any{}
	for _, kind := range kinds {
		lists[kind.Name] = map[string]any{
			"description": kind.Schema.Description, "type": "array", "items": entrySchema(kind.Schema),
		}
	}
	text, err := json.Marshal(map[string]any{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       "providers to create with providerd apply",
		"description": "Lists providers by their kind. Members that begin with x- are ignored.",
		"type":        "object", "properties": lists, "additionalProperties": false,
		"patternProperties": map[string]any{`^x-|^\$schema$`: map[string]any{}},
	})
	var schema any
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err == nil {
		convertSchema(schema)
		text, err = json.MarshalIndent(schema, "", "  ")
	}
	if err != nil {
		return nil, fmt.Errorf("render JSON Schema: %w", err)
	}
	return append(text, '\n'), nil
}

// entrySchema returns the schema of a request with its ids, in which a reference can replace any value.
func entrySchema(request *openapi3.Schema) *openapi3.Schema {
	entry := *request
	entry.Properties = openapi3.Schemas{}
	for name, property := range request.Properties {
		entry.Properties[name] = withReference(property.Value).NewRef()
	}
	if uris := entry.Properties[redirectURIs]; uris != nil {
		lines := openapi3.NewArraySchema().WithItems(openapi3.NewStringSchema())
		entry.Properties[redirectURIs] = openapi3.NewAnyOfSchema(uris.Value, lines).NewRef()
	}
	for name, description := range map[string]string{
		idMember: "Identifies the entry. To change the id after the entry was applied, keep the old id in `was`. " +
			"Default: the name.",
		wasMember: "The former id of an entry whose id was changed.",
	} {
		id := openapi3.NewStringSchema().WithMinLength(1)
		id.Description = description
		entry.Properties[name] = id.NewRef()
	}
	return &entry
}

// withReference also allows a reference for a value or for the elements of a list.
func withReference(schema *openapi3.Schema) *openapi3.Schema {
	if schema.VisitJSON("${NAME}") == nil {
		return schema
	}
	value := *schema
	value.Description = ""
	if schema.Items != nil {
		value.Items = withReference(schema.Items.Value).NewRef()
	}
	either := openapi3.NewAnyOfSchema(&value, openapi3.NewStringSchema().WithPattern(referencePattern))
	either.Description = schema.Description
	return either
}

// convertSchema converts a schema of OpenAPI 3.0 without $ref to JSON Schema.
func convertSchema(schema any) {
	switch schema := schema.(type) {
	case []any:
		for _, inner := range schema {
			convertSchema(inner)
		}
	case map[string]any:
		if schema["nullable"] == true {
			schema["type"] = []any{schema["type"], "null"}
		}
		maps.DeleteFunc(schema, func(name string, _ any) bool {
			return strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "__") || name == "nullable"
		})
		for _, inner := range schema {
			convertSchema(inner)
		}
	}
}
