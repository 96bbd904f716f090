// Package contract parses openapi.yaml, reads request bodies and validates them: it finds every violation, each with
// a pointer, a code and a sentence. It knows neither HTTP nor problem documents: the server creates those from its
// errors, and apply validates files with it before sending anything.
//
// Start with Document and Operation in document.go. json_object.go reads a body, validate.go finds violations, and
// describe.go and suggest.go describe them. Object.Bind turns a valid body into the request of a handler.
package contract

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"example.com/providerd/gen/contract"
	"example.com/providerd/server/contract/pattern"
)

const jsonMediaType = "application/json"

// Document is openapi.yaml, parsed.
type Document struct {
	// YAML is the text that was parsed, without this project's own extensions, and JSON the same document in its order.
	YAML, JSON []byte
	// Description is the description of the API, in Markdown.
	Description string
	// BaseURL is the common prefix of the operations' paths.
	BaseURL    string
	operations []*Operation
	parsed     *openapi3.T
}

// Operation is one operation of the contract.
type Operation struct {
	// ID is the operationId. Path includes the BaseURL.
	ID, Method, Path, Summary string
	// CurlSample is the curl command of its x-codeSamples.
	CurlSample string
	parameters openapi3.Parameters
	body       *openapi3.Schema
	// fields holds the fields of the body in the order of the contract.
	fields []field
	// elsewhere maps the plain name of each field that only another operation has to the path of that operation.
	elsewhere map[string]string
	// sorted holds the names of the fields, sorted.
	sorted  []string
	readers sync.Pool
}

// field is one field of a body: a scalar, a list of scalars, or a free-form object.
type field struct {
	name     string
	required bool
	// rules is the schema of the value, and items the schema of its elements; nil if it is not a list.
	rules, items *openapi3.Schema
	// freeForm is true if the value can be any JSON object.
	freeForm bool
}

// Load parses the embedded contract.
func Load(ctx context.Context) (*Document, error) { return Parse(ctx, contract.YAML()) }

// Parse parses openapi.yaml. It returns an error unless that is valid, names a server and has JSON bodies.
func Parse(ctx context.Context, yaml []byte) (*Document, error) {
	loader := openapi3.NewLoader()
	loader.Context = ctx
	// Only line numbers preserve the order of fields.
	loader.IncludeOrigin = true
	document, err := loader.LoadFromData(yaml)
	if err != nil {
		return nil, fmt.Errorf("parse contract: %w", err)
	}
	for _, schema := range document.Components.Schemas {
		for _, property := range schema.Value.Properties {
			addRefusals(property.Value)
		}
	}
	if err := document.Validate(ctx, openapi3.SetRegexCompiler(pattern.Compiler())); err != nil {
		return nil, fmt.Errorf("validate contract: %w", err)
	}
	served := consumersView(yaml)
	text, err := toJSON(served)
	if err != nil {
		return nil, err
	}
	result := &Document{
		YAML: served, JSON: text, Description: document.Info.Description, BaseURL: document.Servers[0].URL, parsed: document,
	}
	for path, item := range document.Paths.Map() {
		for method, op := range item.Operations() {
			result.operations = append(result.operations, newOperation(method, result.BaseURL+path, op))
		}
	}
	slices.SortFunc(result.operations, func(a, b *Operation) int { return strings.Compare(a.ID, b.ID) })
	for _, op := range result.operations {
		op.elsewhere = result.fieldsOfOthers(op)
	}
	return result, nil
}

// visible matches a text with a character that has a glyph.
const visible = `^[^\x00]*[^\pZ\p{Cc}\p{Cf}\x{34F}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{2065}\x{2800}` +
	`\x{3164}\x{FE00}-\x{FE0F}\x{FFA0}\x{E0000}-\x{E0FFF}][^\x00]*$`

// addRefusals adds the rules that extensions state: x-visible, which extends a pattern to all of Unicode, and that no
// line of a text begins with one of x-refused-schemes. Several consumers can read neither "not" nor such a pattern.
func addRefusals(schema *openapi3.Schema) {
	if schema.Pattern != "" && schema.Extensions["x-visible"] == true {
		schema.Pattern = visible
	}
	schemes, _ := schema.Extensions["x-refused-schemes"].([]any)
	if len(schemes) == 0 {
		return
	}
	names := make([]string, len(schemes))
	for i, scheme := range schemes {
		names[i] = fmt.Sprint(scheme)
	}
	schema.Not = openapi3.NewStringSchema().WithPattern(`(?:^|\n)(?i:` + strings.Join(names, "|") + "):").NewRef()
}

// fieldsOfOthers returns the paths of operations with fields that this one lacks, by the fields' plain names.
func (d *Document) fieldsOfOthers(op *Operation) map[string]string {
	paths := map[string]string{}
	for _, other := range d.operations {
		for _, field := range other.fields {
			if _, ok := op.body.Properties[field.name]; !ok {
				paths[plainName(field.name)] = other.Path
			}
		}
	}
	return paths
}

// Operations returns the operations, sorted by their operationIds.
func (d *Document) Operations() []*Operation { return slices.Clone(d.operations) }

// OperationIDs returns the operationIds, sorted.
func (d *Document) OperationIDs() []string {
	ids := make([]string, len(d.operations))
	for i, op := range d.operations {
		ids[i] = op.ID
	}
	return ids
}

// Example is an example of a response.
type Example struct {
	Summary, Description string
	// Bad is the relevant part of a request that causes the response, and Good of one that does not: the request line, a
	// header, the body or a command. Both are empty if no part of the request is to blame.
	Bad, Good string
	// Value is the body, in JSON.
	Value []byte
}

// Examples returns the examples of the responses of a media type.
func (d *Document) Examples(mediaType string) ([]Example, error) {
	var examples []Example
	for _, response := range d.parsed.Components.Responses {
		media := response.Value.Content[mediaType]
		if media == nil {
			continue
		}
		for title, ref := range media.Examples {
			text, err := json.Marshal(ref.Value.Value)
			if err != nil {
				return nil, fmt.Errorf("render example %s: %w", title, err)
			}
			request, _ := ref.Value.Extensions["x-request"].(map[string]any)
			bad, _ := request["bad"].(string)
			good, _ := request["good"].(string)
			examples = append(examples, Example{ref.Value.Summary, ref.Value.Description, bad, good, text})
		}
	}
	return examples, nil
}

// CodesText returns the description of the violation codes, in Markdown.
func (d *Document) CodesText() string {
	return d.parsed.Components.Schemas["ViolationCode"].Value.Description
}

// Operation finds an operation by its operationId.
func (d *Document) Operation(id string) (*Operation, bool) {
	at := slices.IndexFunc(d.operations, func(op *Operation) bool { return op.ID == id })
	if at < 0 {
		return nil, false
	}
	return d.operations[at], true
}

func newOperation(method, path string, op *openapi3.Operation) *Operation {
	body := op.RequestBody.Value.Content[jsonMediaType].Schema.Value
	result := &Operation{
		ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, CurlSample: curlSample(op),
		parameters: op.Parameters, body: body, sorted: slices.Sorted(maps.Keys(body.Properties)),
		readers: sync.Pool{New: func() any { return new(objectReader) }},
	}
	line := map[string]int{}
	for name, property := range body.Properties {
		// A document in JSON may be a single line without an order of fields.
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

func curlSample(op *openapi3.Operation) string {
	samples, _ := op.Extensions["x-codeSamples"].([]any)
	for _, sample := range samples {
		if sample, _ := sample.(map[string]any); sample["label"] == "curl" {
			source, _ := sample["source"].(string)
			return source
		}
	}
	return ""
}

func (o *Operation) field(name string) *field {
	for i := range o.fields {
		if o.fields[i].name == name {
			return &o.fields[i]
		}
	}
	return nil
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

// FieldNames returns the names of the fields of the body, in the order of the contract.
func (o *Operation) FieldNames() []string {
	names := make([]string, len(o.fields))
	for i, field := range o.fields {
		names[i] = field.name
	}
	return names
}
