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
}

// operation is one operation of the contract.
type operation struct {
	id    string
	route *routers.Route
	// fieldOrder is the place of each field of the body in the contract.
	fieldOrder map[string]int
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
	result := &Contract{yaml: yaml, json: text, baseURL: document.Servers[0].URL}
	for path, item := range document.Paths.Map() {
		for method, op := range item.Operations() {
			route := &routers.Route{Spec: document, Path: path, PathItem: item, Method: method, Operation: op}
			result.operations = append(result.operations, operation{
				id: op.OperationID, route: route, fieldOrder: fieldOrder(op),
			})
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

// fieldOrder is the line of each field of the operation's body.
func fieldOrder(op *openapi3.Operation) map[string]int {
	order := map[string]int{}
	if op.RequestBody == nil {
		return order
	}
	media := op.RequestBody.Value.Content.Get(jsonMediaType)
	for name, property := range media.Schema.Value.Properties {
		// A contract in JSON, which may be one line, has no order that could be kept.
		if property.Origin != nil {
			order[name] = property.Origin.Key.Line
		}
	}
	return order
}
