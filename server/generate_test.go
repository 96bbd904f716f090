package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

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
	isAllowed := func(text string) bool {
		isShown := schema.Extensions["x-visible"] != true || strings.ContainsFunc(text, unicode.IsLetter)
		return isShown && schema.VisitJSON(text) == nil
	}
	generators := []*rapid.Generator[string]{
		rapid.StringMatching(goPattern(schema.Pattern)), rapid.StringN(int(schema.MinLength), int(schema.MinLength)+1, -1),
	}
	if schema.MaxLength != nil {
		generators = append(generators, rapid.StringOfN(rapid.SampledFrom([]rune("aé🔑")),
			int(*schema.MaxLength), int(*schema.MaxLength), -1))
	}
	for i, generator := range generators {
		// A schema may allow no such string.
		if !slices.ContainsFunc([]int{0, 1, 2, 3, 4}, func(seed int) bool { return isAllowed(generator.Example(seed)) }) {
			generators[i] = generators[0]
		}
	}
	return rapid.OneOf(generators...).Filter(isAllowed).AsAny()
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
		generators = append(generators, freeFormObject(depth-1).AsAny(), rapid.SliceOfN(freeForm(depth-1), 0, 3).AsAny())
	}
	return rapid.OneOf(generators...)
}

func freeFormText() *rapid.Generator[string] {
	return rapid.String().Filter(func(text string) bool { return !strings.ContainsRune(text, 0) })
}

// breach breaks one rule of a valid body in one place, to which the pointer leads.
type breach struct {
	title, pointer string
	apply          func(t *rapid.T, body map[string]any)
}

// breaches returns every rule of a schema that a body can break. It reads only the schema.
func breaches(schema *openapi3.Schema) (list []breach) {
	names := slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range names {
		list = append(list, propertyBreaches(name, schema.Properties[name].Value)...)
	}
	for _, name := range schema.Required {
		list = append(list, breach{name + " required", "/" + name, func(_ *rapid.T, body map[string]any) { delete(body, name) }})
	}
	if allowed := schema.AdditionalProperties.Has; allowed != nil && !*allowed {
		unknown := []string{"x-unknown"}
		for _, name := range names {
			unknown = append(unknown, strings.ToUpper(name))
		}
		for _, name := range unknown {
			list = append(list, breach{name + " unknown", "/" + name, func(t *rapid.T, body map[string]any) {
				body[name] = freeForm(1).Draw(t, "value")
			}})
		}
	}
	return list
}

func propertyBreaches(name string, schema *openapi3.Schema) (list []breach) {
	wrong := wrongValues(schema)
	for _, title := range slices.Sorted(maps.Keys(wrong)) {
		list = append(list, breach{name + " " + title, "/" + name, func(t *rapid.T, body map[string]any) {
			body[name] = wrong[title].Draw(t, name)
		}})
	}
	if schema.Items == nil {
		return list
	}
	element, wrongElements := valid(schema.Items.Value), wrongValues(schema.Items.Value)
	for _, title := range slices.Sorted(maps.Keys(wrongElements)) {
		for index := range 3 {
			pointer := fmt.Sprintf("%s/%d", name, index)
			list = append(list, breach{pointer + " " + title, "/" + pointer, func(t *rapid.T, body map[string]any) {
				elements := rapid.SliceOfN(element, index+1, 4).Draw(t, name)
				elements[index] = wrongElements[title].Draw(t, "element")
				body[name] = elements
			}})
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
	if schema.Extensions["x-visible"] == true {
		wrong["x-visible"] = rapid.StringOfN(rapid.SampledFrom([]rune(" \u00ad\u200b\u2003\u3164\ufeff")), 1, 9, -1).AsAny()
	}
	if schemes, ok := schema.Extensions["x-refused-schemes"].([]any); ok {
		wrong["x-refused-schemes"] = rapid.Custom(func(t *rapid.T) any {
			scheme := []rune(fmt.Sprint(rapid.SampledFrom(schemes).Draw(t, "scheme")))
			at := rapid.IntRange(0, len(scheme)-1).Draw(t, "upper case")
			scheme[at] = unicode.ToUpper(scheme[at])
			return rapid.SampledFrom([]string{"", "a:b\n", "a:b\r\nc:d\n"}).Draw(t, "lines before") + string(scheme) + ":x"
		})
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
