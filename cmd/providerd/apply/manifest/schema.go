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
		entry, err := entrySchema(kind.Schema)
		if err != nil {
			return nil, fmt.Errorf("create JSON Schema of %s: %w", kind.Name, err)
		}
		lists[kind.Name] = map[string]any{
			"description": kind.Schema.Description, "type": []string{"array", "null"}, "items": entry,
		}
	}
	text, err := json.MarshalIndent(map[string]any{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       "providers to create with providerd apply",
		"description": "Lists providers by their kind. Members that begin with x- are ignored.",
		"type":        "object", "properties": lists, "additionalProperties": false,
		"patternProperties": map[string]any{`^x-|^\$schema$`: map[string]any{}},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render JSON Schema: %w", err)
	}
	return append(text, '\n'), nil
}

// entrySchema returns the schema of a request with its ids, in which a reference can replace any value.
func entrySchema(request *openapi3.Schema) (map[string]any, error) {
	schema, err := jsonSchema(request)
	if err != nil {
		return nil, err
	}
	properties := map[string]any{
		idMember: map[string]any{
			"type": "string", "minLength": 1,
			"description": "Identifies the entry. To change it once it was applied, keep the old one in was. Default: the name.",
		},
		wasMember: map[string]any{
			"type": "string", "minLength": 1,
			"description": "The former id of an entry whose id was changed.",
		},
	}
	for name, property := range request.Properties {
		converted, err := jsonSchema(property.Value)
		if err != nil {
			return nil, err
		}
		properties[name] = withReference(property.Value, converted)
		if name == "redirect_uris" {
			lines := map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
			properties[name] = map[string]any{"anyOf": []any{properties[name], lines}}
		}
	}
	schema["properties"] = properties
	return schema, nil
}

// withReference also allows a reference for a value or for the elements of a list.
func withReference(schema *openapi3.Schema, converted map[string]any) map[string]any {
	if schema.VisitJSON("${NAME}") == nil {
		return converted
	}
	if schema.Items != nil {
		if items, ok := converted["items"].(map[string]any); ok {
			converted["items"] = withReference(schema.Items.Value, items)
		}
	}
	either := map[string]any{"anyOf": []any{
		converted, map[string]any{"type": "string", "pattern": referencePattern},
	}}
	if schema.Description != "" {
		either["description"] = schema.Description
		delete(converted, "description")
	}
	return either
}

// jsonSchema converts a schema of OpenAPI 3.0 to JSON Schema without $ref.
func jsonSchema(schema *openapi3.Schema) (map[string]any, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("render schema: %w", err)
	}
	var result map[string]any
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	for member, inner := range map[string]*openapi3.SchemaRef{"items": schema.Items, "not": schema.Not} {
		if inner == nil {
			continue
		}
		if result[member], err = jsonSchema(inner.Value); err != nil {
			return nil, err
		}
	}
	if schema.Nullable {
		result["type"] = append(schema.Type.Slice(), "null")
	}
	maps.DeleteFunc(result, func(name string, _ any) bool {
		return strings.HasPrefix(name, "x-") || strings.HasPrefix(name, "__") || name == "nullable"
	})
	return result, nil
}
