package server_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"
)

// breach breaks one rule of a valid body in one place.
type breach struct {
	title string
	// pointer leads to the only place where the body is broken then.
	pointer string
	apply   func(t *rapid.T, body map[string]any)
}

// breaches returns every rule of a schema that a body can break. It reads only the schema.
func breaches(schema *openapi3.Schema) []breach {
	var list []breach
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		list = append(list, propertyBreaches(name, schema.Properties[name].Value)...)
	}
	for _, name := range schema.Required {
		list = append(list, breach{
			title: name + " required", pointer: "/" + name,
			apply: func(_ *rapid.T, body map[string]any) { delete(body, name) },
		})
	}
	if allowed := schema.AdditionalProperties.Has; allowed != nil && !*allowed {
		list = append(list, breach{
			title: "additionalProperties", pointer: "/x-unknown",
			apply: func(t *rapid.T, body map[string]any) { body["x-unknown"] = freeForm(1).Draw(t, "value") },
		})
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			list = append(list, breach{
				title: name + " in other case", pointer: "/" + strings.ToUpper(name),
				apply: func(t *rapid.T, body map[string]any) { body[strings.ToUpper(name)] = freeForm(1).Draw(t, "value") },
			})
		}
	}
	return list
}

func propertyBreaches(name string, schema *openapi3.Schema) []breach {
	var list []breach
	wrong := wrongValues(schema)
	for _, title := range slices.Sorted(maps.Keys(wrong)) {
		list = append(list, breach{
			title: name + " " + title, pointer: "/" + name,
			apply: func(t *rapid.T, body map[string]any) { body[name] = wrong[title].Draw(t, name) },
		})
	}
	if schema.Items == nil {
		return list
	}
	element, wrongElements := valid(schema.Items.Value), wrongValues(schema.Items.Value)
	for _, title := range slices.Sorted(maps.Keys(wrongElements)) {
		for index := range 3 {
			list = append(list, breach{
				title: fmt.Sprintf("%s/%d %s", name, index, title), pointer: fmt.Sprintf("/%s/%d", name, index),
				apply: func(t *rapid.T, body map[string]any) {
					elements := rapid.SliceOfN(element, index+1, 4).Draw(t, name)
					elements[index] = wrongElements[title].Draw(t, "element")
					body[name] = elements
				},
			})
		}
	}
	return list
}

// wrongValues generates, for each rule of a schema, values that break it.
func wrongValues(schema *openapi3.Schema) map[string]*rapid.Generator[any] {
	wrong := map[string]*rapid.Generator[any]{}
	for title, value := range map[string]any{
		openapi3.TypeString: "x", openapi3.TypeNumber: 1.5, openapi3.TypeBoolean: false,
		openapi3.TypeArray: []any{}, openapi3.TypeObject: map[string]any{},
	} {
		if !schema.Type.Is(title) {
			wrong["type "+title] = rapid.Just(value)
		}
	}
	if !schema.Nullable {
		wrong["null"] = rapid.Just[any](nil)
	}
	if schema.MinLength > 0 {
		wrong["minLength"] = rapid.Just[any]("")
	}
	if schema.MaxLength != nil {
		limit := int(*schema.MaxLength)
		wrong["maxLength"] = rapid.StringOfN(rapid.SampledFrom([]rune("aé🔑")), limit+1, limit+3, -1).AsAny()
	}
	if len(schema.Enum) > 0 {
		wrong["enum"] = refusedBy(schema, rapid.String())
	}
	if schema.Pattern != "" {
		wrong["pattern"] = refusedBy(schema, corrupted(rapid.StringMatching(goPattern(schema.Pattern))))
	}
	if schema.Not != nil {
		wrong["not"] = refusedBy(schema, rapid.Map(rapid.StringMatching(goPattern(schema.Not.Value.Pattern)),
			func(text string) string { return strings.TrimPrefix(text, "\n") + "x" }))
	}
	if schema.Type.Is(openapi3.TypeObject) && len(schema.Properties) == 0 {
		delete(wrong, "type object")
	}
	return wrong
}

func refusedBy(schema *openapi3.Schema, generator *rapid.Generator[string]) *rapid.Generator[any] {
	return generator.Filter(func(text string) bool { return schema.VisitJSON(text) != nil }).AsAny()
}

// corrupted inserts a character that patterns tend to reject into a string, or removes one.
func corrupted(generator *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		text := []rune(generator.Draw(t, "text"))
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		if len(text) > 0 && rapid.Bool().Draw(t, "take out") {
			at = min(at, len(text)-1)
			return string(slices.Delete(text, at, at+1))
		}
		with := rapid.SampledFrom([]rune("\x00 \t\n#@;=.-_ü\u00a0\u2028\x7f")).Draw(t, "with")
		return string(slices.Insert(text, at, with))
	})
}
