package server

import (
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
	// lenientRoute ignores fields of the body that the contract does not know.
	lenientRoute *routers.Route
	// fieldOrder is the line of each field of the body in the contract.
	fieldOrder map[string]int
	// freeForm has the fields of the body that take any JSON object.
	freeForm map[string]bool
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
	schema := bodySchema(route.Operation)
	result := operation{
		id: id, route: &route, lenientRoute: lenient(route, *schema),
		fieldOrder: map[string]int{}, freeForm: map[string]bool{},
	}
	for name, property := range schema.Properties {
		// A contract in JSON, which may be one line, has no order that could be kept.
		if property.Origin != nil {
			result.fieldOrder[name] = property.Origin.Key.Line
		}
		result.freeForm[name] = property.Value.Type.Is(openapi3.TypeObject) && len(property.Value.Properties) == 0
	}
	return result, nil
}

// bodySchema is that of an operation's JSON body, which newOperation has made sure of.
func bodySchema(op *openapi3.Operation) *openapi3.Schema {
	return op.RequestBody.Value.Content[jsonMediaType].Schema.Value
}

// lenient is the route with an open schema of the body.
func lenient(route routers.Route, schema openapi3.Schema) *routers.Route {
	schema.AdditionalProperties = openapi3.AdditionalProperties{}
	open := *route.Operation
	open.RequestBody = &openapi3.RequestBodyRef{
		Value: openapi3.NewRequestBody().WithRequired(true).WithJSONSchema(&schema),
	}
	route.Operation = &open
	return &route
}
