package advice

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"golang.org/x/net/idna"
)

const (
	requestSchema = "openapi.yaml, OAuth2ProviderRequest"

	// The rest are parts of examples.
	some         = `"3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"`
	randomSecret = `"client_secret": "Zt4vQy8LmN1xRw6KpJ3sHd9Fb2Cg7TuE"`
)

var (
	// reference matches what other systems replace by a value before they use it: the scheme of a provider and the rest, a
	// text in paired delimiters, or the name of a variable.
	reference = regexp.MustCompile(`^((op|ref\+\w+|file|env|vault|arn|secretref|secret|keyvault|aws-?sm|gcp-?sm|sm|ssm|` +
		`doppler|bws|akeyless|infisical|conjur|keyring|keychain|aws_secret|gcp_secret):[\w/.@{$-].*|` +
		`\$[({].+[)}]|\{\{.+\}\}|#\{.+\}#?|@@.+@@|@[\w.]+\(.+\)|\(\(.+\)\)|<[\w .:%=/-]+>|__\w+__|%\w+%|ENC\[.+\]|` +
		`\$[A-Za-z_]\w*|([A-Z0-9]+_)*(CLIENT_ID|SECRET|PASSWORD)(_[A-Z0-9]+)*)$`)
	// digest matches what other systems store or show instead of a password: an algorithm and its result, or a mask.
	digest = regexp.MustCompile(`(?i)^(\$[a-z0-9-]+\$.+|(argon2|bcrypt|scrypt|pbkdf2|crypt|s?sha\d+|s?sha|md5)` +
		`(id?|[_-]\w+)?[$:].+|\{[a-z][a-z0-9]{2,}([.-][a-z0-9]+)*\}.+|[*•]+)$`)
	// reservedInID matches a colon, and what is not printable ASCII.
	reservedInID = regexp.MustCompile(`[^ -9;-~]`)
	// unreserved matches what clients and servers rarely encode differently.
	unreserved = regexp.MustCompile(`^[A-Za-z0-9_.~-]*$`)
)

// trimPadding removes what is often copied along with a value.
func trimPadding(text string) string {
	return strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`\u201c\u201d\ufeff", r)
	})
}

func isPadded(text string) bool { return trimPadding(text) != text }

func isReference(text string) bool { return reference.MatchString(trimPadding(text)) }

// isEncodedDifferently ignores what has advice of its own.
func isEncodedDifferently(secret string) bool {
	return !unreserved.MatchString(trimPadding(secret)) && !isReference(secret) && !digest.MatchString(secret)
}

func isDomain(text string) bool {
	profile := idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))
	_, err := profile.ToASCII(text)
	return err == nil && !strings.HasSuffix(text, ".")
}

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
		Section: "RFC 6749, appendix A",
		Seen:    "The line break of echo became part of the secret (aws-load-balancer-controller issue 3865).",
		Bad:     `"office "`,
	}, get, isPadded)
}

func unresolved(field string, get func(client) string) rule[client] {
	return onText(field, Rule{
		Code: "reference_unresolved",
		When: "looks like a reference or a placeholder, such as ${NAME}, <NAME>, op://vault/item or vault:path",
		Detail: "Looks like a reference or a placeholder of another system. It is not replaced here, so anyone who can " +
			"read the file knows the value. Set the value that it stands for.",
		Section: requestSchema,
		Seen:    "Argo CD sent $oidc.okta.cliClientID to the server as it was (argo-cd issue 9680).",
		Bad:     `"${CLIENT}"`,
	}, get, isReference)
}

func reserved(field, when, detail string, bad string, get func(client) string, holds func(string) bool) rule[client] {
	return onText(field, Rule{
		Code: field + "_reserved", When: when, Detail: "In HTTP Basic authentication, clients and servers encode such " +
			"characters differently. " + detail,
		Section: "RFC 6749, section 2.3.1",
		Seen: "Of 24 pairs of openid-client 6.9.0, simple-oauth2 5.1.0, client-oauth2 4.3.3, x/oauth2 0.38.0 and others " +
			"with oidc-provider 9.13.3, fosite 0.49.0, go-oauth2 4.5.4 and @node-oauth/oauth2-server 5.3.0, 12 failed " +
			"with +, / and = in the secret, 16 with urn:shop as client_id, and none with letters and digits.",
		Bad: bad,
	}, get, holds)
}

// nilUUID returns the rule for a field whose value should be the UUID of something else.
func nilUUID[Settings any](field, other string, get func(Settings) *uuid.UUID) rule[Settings] {
	return rule[Settings]{Rule: Rule{
		Code: "nil_uuid", Pointer: "/" + field, When: field + " is the nil UUID",
		Detail:  "The nil UUID identifies nothing. Set the UUID of " + other + ".",
		Section: "RFC 9562, section 5.9",
		Seen:    "google/uuid 1.6.0 writes an unset UUID like this, with omitempty, too (its issue 119).",
		Bad:     `"` + field + `": "` + uuid.Nil.String() + `"`, Good: `"` + field + `": ` + some,
	}, holds: func(settings Settings) bool { id := get(settings); return id != nil && *id == uuid.Nil }}
}

func zero(field string, get func(client) string) rule[client] {
	return onText(field, Rule{
		Code: "validity_zero", When: "is shorter than a second",
		Detail:  "What is issued expires immediately. Set a longer validity, or omit the field.",
		Section: requestSchema,
		Seen:    "go-oidc 3.21.0, hashicorp/cap 0.16.0 and zitadel/oidc 3.52.0 refuse ID tokens of no validity as expired.",
		Bad:     `"seconds=0"`, Good: `"minutes=1"`,
	}, get, func(validity string) bool { return validity != "" && !isLonger(validity, time.Second-time.Millisecond) })
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
