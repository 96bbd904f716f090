package server_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"
)

// valid generates values that a schema of the contract allows. It reads only the schema.
func valid(schema *openapi3.Schema) *rapid.Generator[any] {
	generator := validNotNull(schema)
	if schema.Nullable {
		return rapid.OneOf(generator, generator, generator, rapid.Just[any](nil))
	}
	return generator
}

func validNotNull(schema *openapi3.Schema) *rapid.Generator[any] {
	switch {
	case len(schema.Enum) > 0:
		return rapid.SampledFrom(schema.Enum)
	case schema.Type.Is(openapi3.TypeString):
		return validString(schema)
	case schema.Type.Is(openapi3.TypeBoolean):
		return rapid.Bool().AsAny()
	case schema.Type.Is(openapi3.TypeArray):
		return rapid.SliceOfN(valid(schema.Items.Value), 0, 4).AsAny()
	case schema.Type.Is(openapi3.TypeObject) && len(schema.Properties) == 0:
		return freeFormObject(3).AsAny()
	case schema.Type.Is(openapi3.TypeObject):
		return validObject(schema).AsAny()
	default:
		panic("the contract has a type that no value is generated for: " + strings.Join(schema.Type.Slice(), " "))
	}
}

func validObject(schema *openapi3.Schema) *rapid.Generator[map[string]any] {
	names := slices.Sorted(maps.Keys(schema.Properties))
	values := map[string]*rapid.Generator[any]{}
	for _, name := range names {
		values[name] = valid(schema.Properties[name].Value)
	}
	return rapid.Custom(func(t *rapid.T) map[string]any {
		object := map[string]any{}
		for _, name := range names {
			if slices.Contains(schema.Required, name) || rapid.Bool().Draw(t, "has "+name) {
				object[name] = values[name].Draw(t, name)
			}
		}
		return object
	})
}

// validString generates a string from the pattern, sometimes of the minimum or maximum length.
func validString(schema *openapi3.Schema) *rapid.Generator[any] {
	generators := []*rapid.Generator[string]{rapid.StringMatching(goPattern(schema.Pattern))}
	if schema.MaxLength != nil {
		generators = append(generators, rapid.StringOfN(rapid.SampledFrom([]rune("aé🔑")),
			int(*schema.MaxLength), int(*schema.MaxLength), -1))
	}
	generators = append(generators, rapid.StringN(int(schema.MinLength), int(schema.MinLength)+1, -1))
	for i, generator := range generators {
		// A schema may allow no such string.
		if !allowsSome(schema, generator) {
			generators[i] = generators[0]
		}
	}
	return rapid.OneOf(generators...).Filter(func(text string) bool { return schema.VisitJSON(text) == nil }).AsAny()
}

func allowsSome(schema *openapi3.Schema, generator *rapid.Generator[string]) bool {
	for seed := range 5 {
		if schema.VisitJSON(generator.Example(seed)) == nil {
			return true
		}
	}
	return false
}

// goPattern converts a pattern of the contract from ECMA 262 to Go.
func goPattern(pattern string) string {
	return regexp.MustCompile(`\\u([0-9A-F]{4})`).ReplaceAllString(pattern, `\x{$1}`)
}

// freeFormObject generates any JSON object without U+0000, up to a depth.
func freeFormObject(depth int) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(freeFormText(), freeForm(depth), 0, 4)
}

func freeForm(depth int) *rapid.Generator[any] {
	generators := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), freeFormText().AsAny(),
		rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?`),
			func(digits string) any { return json.Number(digits) }),
	}
	if depth > 0 {
		generators = append(generators,
			freeFormObject(depth-1).AsAny(), rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[any] {
				return freeForm(depth - 1)
			}), 0, 3).AsAny())
	}
	return rapid.OneOf(generators...)
}

func freeFormText() *rapid.Generator[string] {
	return rapid.String().Filter(func(text string) bool { return !strings.ContainsRune(text, 0) })
}
