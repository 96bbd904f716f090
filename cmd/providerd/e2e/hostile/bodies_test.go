//go:build slow

package hostile_test

import (
	"fmt"
	"strings"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// hostileFlow is an arbitrary UUID.
const hostileFlow = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"

// hostileShape generates bodies of about a length, at most 1 MiB, that take as much memory as possible.
type hostileShape struct {
	path string
	make func(length int) string
}

// hostileShapes returns valid bodies, then bodies that violate many rules, or one rule whose check is expensive.
func hostileShapes() map[string]hostileShape {
	directory := func(inside func(length int) string) hostileShape {
		const begin = `{"name":"n","delegated_subject":"a@b.c","default_group_email_domain":"b.c","credentials":{`
		return hostileShape{providerdtest.DirectoryPath, func(length int) string { return begin + inside(length-len(begin)) + "}}" }}
	}
	oauth2 := func(inside func(length int) string) hostileShape {
		const begin = `{"name":"n","authorization_flow":"` + hostileFlow + `",`
		return hostileShape{providerdtest.OAuth2Path, func(length int) string { return begin + inside(length-len(begin)) + "}" }}
	}
	text := func(name, part string) func(int) string {
		return func(length int) string { return `"` + name + `":"` + fill(part, length) + `"` }
	}
	list := func(name, part, last string) func(int) string {
		return func(length int) string { return `"` + name + `":[` + fill(part, length) + last + "]" }
	}
	return map[string]hostileShape{
		"objects in a list":       directory(list("a", `{"":0},`, "0")),
		"short names":             directory(shortNames),
		"escaped in the response": directory(text("a", "<")),
		"escaped in the body":     directory(text("a", `\u0041`)),
		"white space":             directory(func(length int) string { return `"a":1` + fill(" ", length) }),
		"escaped URIs":            oauth2(text("redirect_uris", "a:<")),
		"UUIDs":                   oauth2(list("property_mappings", `"`+hostileFlow+`",`, `"`+hostileFlow+`"`)),

		"U+0000 under a long name": directory(func(length int) string {
			return `"` + fill("k", length/2) + `":[` + fill(`"\u0000",`, length/2) + "5]"
		}),
		"U+0000 under a name of 900": directory(func(length int) string {
			return list(fill("<", 1000), `"\u0000",`, "0")(length - 1000)
		}),
		"U+0000 in a name":   directory(func(length int) string { return `"` + fill(`\u0000`, length) + `":1` }),
		"a name twice":       directory(func(length int) string { return `"` + fill("k", length) + `":{"a":1,"a":1}` }),
		"numbers in a list":  oauth2(list("property_mappings", "1,", "1")),
		"lists in a list":    oauth2(list("jwks_sources", "[],", "{}")),
		"texts in a list":    oauth2(list("jwks_sources", `"ab",`, "null")),
		"objects for a text": oauth2(list("client_id", `{"":0},`, "0")),
		"unknown fields":     oauth2(shortNames),
		"long unknown field": oauth2(func(length int) string { return `"` + fill("<", length) + `":1` }),
		"bad last line":      oauth2(func(length int) string { return `"redirect_uris":"` + fill(`a:b\n`, length) + ` "` }),
		"long number":        oauth2(func(length int) string { return `"client_id":` + fill("1", length) }),
	}
}

// fill returns as many copies of part as fit in length, with some room around them.
func fill(part string, length int) string {
	return strings.Repeat(part, max(0, length-100)/len(part))
}

// shortNames returns as many members as fit in length.
func shortNames(length int) string {
	var members strings.Builder
	for i := 0; members.Len() < length-100; i++ {
		fmt.Fprintf(&members, `"%x":1,`, i)
	}
	return members.String() + `"last":1`
}
