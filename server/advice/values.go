package advice

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
)

const (
	// requestSchema describes the fields of an OAuth2 provider.
	requestSchema = "openapi.yaml, OAuth2ProviderRequest"

	// The rest are parts of examples.
	some         = `"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"`
	randomSecret = `"client_secret": "Zt4vQy8LmN1xRw6KpJ3sHd9Fb2Cg7TuE"`
)

var (
	// reference matches what other systems replace by a value before they use it.
	reference = regexp.MustCompile(`^(\$\(.+\)|\$\{.+\}|\$[A-Za-z_]\w*|\{\{.+\}\}|<.+>|__\w+__|ENC\[.+\]|` +
		`(op|ref\+\w+)://.+|(vault|env):.+|%\w+%|[A-Z0-9_]*(CLIENT_ID|SECRET|PASSWORD)[A-Z0-9_]*)$`)
	// digest matches what other systems store instead of a password.
	digest = regexp.MustCompile(`^(\$[a-z0-9-]+\$.+|pbkdf2_\w+\$.+|\{[A-Z0-9]+\}.+)$`)
)

// trimPadding removes what is often copied along with a value.
func trimPadding(text string) string {
	return strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`\u201c\u201d\ufeff", r)
	})
}

func isPadded(text string) bool { return trimPadding(text) != text }

func isReference(text string) bool { return reference.MatchString(trimPadding(text)) }

// isUnprintable ignores padding, which has advice of its own.
func isUnprintable(text string) bool {
	return strings.ContainsFunc(trimPadding(text), func(r rune) bool { return r < ' ' || r > '~' })
}

// isNoDomain reports whether a string has a character that no domain name has, but an address, a URL or a copied line.
func isNoDomain(text string) bool {
	return isPadded(text) || strings.ContainsAny(text, "@:/ \t\r\n")
}

// onText returns a rule about a field that is text.
func onText(field string, about Rule, get func(client) string, condition func(string) bool) rule[client] {
	about.Pointer, about.When = "/"+field, field+" "+about.When
	if about.Bad = `"` + field + `": ` + about.Bad; about.Good != "" {
		about.Good = `"` + field + `": ` + about.Good
	} else if about.Good = `"` + field + `": "office"`; field == "client_secret" {
		about.Good = randomSecret
	}
	return rule[client]{Rule: about, holds: func(c client) bool { return condition(get(c)) }}
}

func padded(field string, get func(client) string) rule[client] {
	return onText(field, Rule{
		Code: "value_padded", When: "begins or ends with white space, a line break, a quotation mark or a byte order mark",
		Detail: "Begins or ends with white space, a line break, a quotation mark or a byte order mark, which is part of " +
			"the value. Remove it, here and in the client.",
		Section: "RFC 6749, appendix A", Bad: `"office "`,
	}, get, isPadded)
}

func unresolved(field string, get func(client) string) rule[client] {
	return onText(field, Rule{
		Code: "reference_unresolved",
		When: "looks like a reference or a placeholder, such as ${NAME}, <NAME>, op://vault/item or vault:path",
		Detail: "Looks like a reference or a placeholder of another system. It is not replaced here, so anyone who can " +
			"read the file knows the value. Set the value that it stands for.",
		Section: requestSchema, Bad: `"${CLIENT}"`,
	}, get, isReference)
}

func unprintable(field, section string, get func(client) string) rule[client] {
	return onText(field, Rule{
		Code: field + "_unprintable", When: "contains a character other than printable ASCII, apart from padding at its ends",
		Detail:  "Clients encode such characters differently. Use only printable ASCII.",
		Section: section, Bad: `"büro"`,
	}, get, isUnprintable)
}

// nilUUID returns the rule for a field whose value should be the UUID of something else.
func nilUUID[Settings any](field, other string, get func(Settings) *uuid.UUID) rule[Settings] {
	return rule[Settings]{Rule: Rule{
		Code: "nil_uuid", Pointer: "/" + field, When: field + " is the nil UUID",
		Detail:  "The nil UUID identifies nothing. Set the UUID of " + other + ".",
		Section: "RFC 9562, section 5.9",
		Bad:     `"` + field + `": "` + uuid.Nil.String() + `"`, Good: `"` + field + `": ` + some,
	}, holds: func(settings Settings) bool { id := get(settings); return id != nil && *id == uuid.Nil }}
}

func zero(field string, get func(client) string) rule[client] {
	return onText(field, Rule{
		Code: "validity_zero", When: "is zero",
		Detail:  "What is issued expires immediately. Set a longer validity, or omit the field.",
		Section: requestSchema, Bad: `"seconds=0"`, Good: `"minutes=1"`,
	}, get, isZero)
}

func unitTwice(field string, get func(client) string) rule[client] {
	return onText(field, Rule{
		Code: "validity_unit_twice", When: "has a unit twice",
		Detail:  "Some systems add such parts; others use the last one. Give each unit once.",
		Section: requestSchema, Bad: `"minutes=1;minutes=2"`, Good: `"minutes=3"`,
	}, get, hasUnitTwice)
}

func isZero(validity string) bool {
	return validity != "" && !strings.ContainsAny(validity, "123456789")
}

// hasUnitTwice stops at the first unit that is repeated, so that it remembers few.
func hasUnitTwice(validity string) bool {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(validity, ";") {
		unit, _, _ := strings.Cut(part, "=")
		if seen[unit] {
			return true
		}
		seen[unit] = true
	}
	return false
}

// isRepetitive reports whether a text has fewer distinct bytes than random texts have, even hexadecimal ones.
func isRepetitive(text string) bool {
	const fewDistinct = 8
	return len(slices.Compact(slices.Sorted(slices.Values([]byte(text))))) < fewDistinct
}

// isLonger reports whether a validity such as "hours=1;minutes=30" is longer than a limit. Invalid parts count as 0.
func isLonger(validity string, limit time.Duration) bool {
	millisecondsOf := map[string]float64{
		"microseconds": 1e-3, "milliseconds": 1, "seconds": 1e3, "minutes": 60e3, "hours": 3600e3, "days": 24 * 3600e3,
		"weeks": 7 * 24 * 3600e3,
	}
	var milliseconds float64
	for part := range strings.SplitSeq(validity, ";") {
		unit, text, _ := strings.Cut(part, "=")
		if number, err := strconv.ParseFloat(text, 64); err == nil {
			milliseconds += number * millisecondsOf[unit]
		}
	}
	// A difference of less than a millisecond may be a rounding error of the sum.
	return milliseconds >= float64(limit.Milliseconds())+1
}
