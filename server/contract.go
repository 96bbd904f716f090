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
	// parameters are those of the query, all of them boolean.
	parameters []string
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

// ParseContract reads the text of openapi.yaml. It fails when that is not a valid OpenAPI document with one server.
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
	if len(document.Servers) != 1 {
		return nil, fmt.Errorf("contract has %d servers, not one", len(document.Servers))
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("render contract as JSON: %w", err)
	}
	result := &Contract{yaml: yaml, json: text, baseURL: document.Servers[0].URL, document: document}
	for path, item := range document.Paths.Map() {
		for method, op := range item.Operations() {
			one, err := newOperation(routers.Route{
				Spec: document, Path: path, PathItem: item, Method: method, Operation: op,
			})
			if err != nil {
				return nil, err
			}
			result.operations = append(result.operations, one)
		}
	}
	slices.SortFunc(result.operations, func(a, b operation) int { return strings.Compare(a.id, b.id) })
	return result, nil
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

func newOperation(route routers.Route) (operation, error) {
	id := route.Operation.OperationID
	body := route.Operation.RequestBody
	if body == nil || body.Value.Content[jsonMediaType] == nil {
		return operation{}, fmt.Errorf("operation %s has no JSON body", id)
	}
	result := operation{id: id, route: &route, body: body.Value.Content[jsonMediaType].Schema.Value}
	for _, parameter := range route.Operation.Parameters {
		if one := parameter.Value; one.In == openapi3.ParameterInQuery {
			if !one.Schema.Value.Type.Is(openapi3.TypeBoolean) {
				return operation{}, fmt.Errorf("operation %s: query parameter %s is not a boolean", id, one.Name)
			}
			result.parameters = append(result.parameters, one.Name)
		}
	}
	line := map[string]int{}
	for name, property := range result.body.Properties {
		// A contract in JSON, which may be one line, has no order that could be kept.
		if property.Origin != nil {
			line[name] = property.Origin.Key.Line
		}
		one, err := newField(name, result.body, property.Value)
		if err != nil {
			return operation{}, fmt.Errorf("operation %s: %w", id, err)
		}
		result.fields = append(result.fields, one)
	}
	slices.SortFunc(result.fields, func(a, b field) int {
		return cmp.Or(cmp.Compare(line[a.name], line[b.name]), cmp.Compare(a.name, b.name))
	})
	return result, nil
}

// isClosed tells whether the body takes no fields but those of the contract.
func (o operation) isClosed() bool {
	takesMore := o.body.AdditionalProperties.Has
	return takesMore != nil && !*takesMore
}

// newField refuses a schema that goes deeper than a body is read.
func newField(name string, body, schema *openapi3.Schema) (field, error) {
	result := field{name: name, required: slices.Contains(body.Required, name)}
	rules := *schema
	result.rules = &rules
	switch {
	case schema.ReadOnly:
		return field{}, fmt.Errorf("field %s of a request is read-only", name)
	case isScalar(schema):
		return result, nil
	case schema.Type.Is(openapi3.TypeArray) && schema.Items != nil && isScalar(schema.Items.Value):
		result.items, rules.Items = schema.Items.Value, nil
		return result, nil
	case schema.Type.Is(openapi3.TypeObject) && !hasMemberRules(schema):
		result.freeForm = true
		return result, nil
	default:
		return field{}, fmt.Errorf("field %s is neither a scalar, nor a list of scalars, nor a free-form object", name)
	}
}

func isScalar(schema *openapi3.Schema) bool {
	return !schema.Type.Permits(openapi3.TypeObject) && !schema.Type.Permits(openapi3.TypeArray)
}

// hasMemberRules tells whether it matters to the schema of an object what its members are.
func hasMemberRules(schema *openapi3.Schema) bool {
	return len(schema.Properties) > 0 || len(schema.Required) > 0 || schema.MinProps > 0 || schema.MaxProps != nil ||
		schema.AdditionalProperties.Schema != nil
}
