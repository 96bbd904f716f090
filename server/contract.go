package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
)

const jsonMediaType = "application/json"

// Contract is openapi.yaml, parsed.
type Contract struct {
	yaml       []byte
	json       []byte
	baseURL    string
	operations []operation
	document   *openapi3.T
}

// operation is one operation of the contract.
type operation struct {
	id    string
	route *routers.Route
	// body is the schema of the body.
	body *openapi3.Schema
	// fields are those of the body, in the order of the contract.
	fields []field
	// elsewhere has the path of the operation that takes a field which this one does not, by its plain name.
	elsewhere map[string]string
}

// field is one field of a body: a scalar, a list of scalars, or a free-form object.
type field struct {
	name     string
	required bool
	// rules are those of the value, without those of the elements of a list, which are items; nil where it is no list.
	rules, items *openapi3.Schema
	// freeForm tells that it takes any JSON object.
	freeForm bool
}

// ParseContract reads the text of openapi.yaml, which names a server, and whose operations take JSON. It fails when the
// text is not a valid OpenAPI document.
func ParseContract(ctx context.Context, yaml []byte) (*Contract, error) {
	loader := openapi3.NewLoader()
	loader.Context = ctx
	// The order of the fields is only in their line numbers.
	loader.IncludeOrigin = true
	document, err := loader.LoadFromData(yaml)
	if err != nil {
		return nil, fmt.Errorf("parse contract: %w", err)
	}
	if err := document.Validate(ctx); err != nil {
		return nil, fmt.Errorf("validate contract: %w", err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("render contract as JSON: %w", err)
	}
	result := &Contract{yaml: yaml, json: text, baseURL: document.Servers[0].URL, document: document}
	for path, item := range document.Paths.Map() {
		for method, op := range item.Operations() {
			result.operations = append(result.operations, newOperation(routers.Route{
				Spec: document, Path: path, PathItem: item, Method: method, Operation: op,
			}))
		}
	}
	slices.SortFunc(result.operations, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	for i := range result.operations {
		result.operations[i].elsewhere = result.fieldsOfOthers(result.operations[i])
	}
	return result, nil
}

// fieldsOfOthers returns, by their plain names, the paths of the operations that take fields which this one does not.
func (c *Contract) fieldsOfOthers(op operation) map[string]string {
	paths := map[string]string{}
	for _, other := range c.operations {
		for _, field := range other.fields {
			if _, ok := op.body.Properties[field.name]; !ok {
				paths[plainName(field.name)] = c.baseURL + other.route.Path
			}
		}
	}
	return paths
}

// Operations returns the operationIds, sorted.
func (c *Contract) Operations() []string {
	ids := make([]string, len(c.operations))
	for i, op := range c.operations {
		ids[i] = op.id
	}
	return ids
}

// violationCodes returns the codes that a violation may have.
func (c *Contract) violationCodes() []string {
	schema := c.document.Components.Schemas["ViolationCode"]
	if schema == nil {
		return nil
	}
	var codes []string
	for _, code := range schema.Value.Enum {
		codes = append(codes, fmt.Sprint(code))
	}
	return codes
}

// operation finds an operation by its operationId.
func (c *Contract) operation(id string) (operation, bool) {
	at := slices.IndexFunc(c.operations, func(op operation) bool { return op.id == id })
	if at < 0 {
		return operation{}, false
	}
	return c.operations[at], true
}

func newOperation(route routers.Route) operation {
	body := route.Operation.RequestBody.Value.Content[jsonMediaType].Schema.Value
	result := operation{id: route.Operation.OperationID, route: &route, body: body}
	line := map[string]int{}
	for name, property := range body.Properties {
		// A contract in JSON, which may be one line, has no order that could be kept.
		if property.Origin != nil {
			line[name] = property.Origin.Key.Line
		}
		result.fields = append(result.fields, newField(name, body, property.Value))
	}
	slices.SortFunc(result.fields, func(a, b field) int {
		return cmp.Or(cmp.Compare(line[a.name], line[b.name]), cmp.Compare(a.name, b.name))
	})
	return result
}

// isClosed tells whether the body takes no fields but those of the contract.
func (o operation) isClosed() bool {
	takesMore := o.body.AdditionalProperties.Has
	return takesMore != nil && !*takesMore
}

func newField(name string, body, schema *openapi3.Schema) field {
	rules := *schema
	result := field{
		name: name, required: slices.Contains(body.Required, name), rules: &rules,
		freeForm: schema.Type.Is(openapi3.TypeObject),
	}
	if schema.Items != nil {
		result.items, rules.Items = schema.Items.Value, nil
	}
	return result
}
