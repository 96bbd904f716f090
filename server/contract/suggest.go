package contract

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxSuggestions limits how many unknown fields get a suggestion: with more, the request is for something else.
	maxSuggestions = 20
	notAField      = "is not a field of this request; omit it"
)

// suggestField returns what to send instead of a name that is not a field of the request.
func (o *Operation) suggestField(name string) string {
	if len(name) > maxSimilarLength {
		return notAField
	}
	if _, remedy := MisplacedParameter(name); remedy != "" {
		return "is not a field of this request; " + remedy
	}
	if path, ok := o.elsewhere[plainName(name)]; ok {
		return fmt.Sprintf("is a field of POST %s, not of this request; omit it, or send the request there", path)
	}
	if meant := otherSystems(plainName(name)); o.body.Properties[meant] != nil {
		if values := allowedValues(o.body.Properties[meant].Value); values != "" {
			meant += ", which is " + strings.ReplaceAll(values, ", ", " or ")
		}
		return fmt.Sprintf("is not a field of this request; did you mean %s?", meant)
	}
	if name == "application" {
		return `is not a field of this request; operators link providers with "providerd application link"`
	}
	if name == "jwks" {
		// RFC 7591: keys of the client, not sources.
		return notAField
	}
	if meant := cmp.Or(MostSimilar(name, o.FieldNames()), o.fieldWithWords(name)); meant != "" {
		return fmt.Sprintf("is not a field of this request; did you mean %s?", meant)
	}
	return notAField
}

// Names of parameters.
const (
	ValidateOnly   = "validate_only"
	IdempotencyKey = "Idempotency-Key"
)

// MisplacedParameter returns which parameter a header, or a member of the body, is meant as, and how to send it: if it
// were ignored, a validation would be stored, or a retry stored twice. It returns "" for other names.
func MisplacedParameter(name string) (parameter, remedy string) {
	if len(name) > maxSimilarLength {
		return "", ""
	}
	plain := plainName(name)
	switch {
	case strings.Contains(plain, "validateonly"), strings.Contains(plain, "dryrun"):
		return ValidateOnly, "to validate, send ?validate_only=true in the query"
	case strings.Contains(plain, "idempoten"):
		return IdempotencyKey, "send the key in the header Idempotency-Key"
	default:
		return "", ""
	}
}

// otherSystems returns what a word, or the plain name of a field, of another system is here; "" if it is not known.
func otherSystems(name string) string {
	for here, names := range map[string]string{
		"client_type": "allowpublicclient applicationtype apptype clientauthmethod confidential confidentialclient " +
			"isconfidential isfallbackpublicclient ispublic public publicclient tokenendpointauthmethod",
		"jwks_sources":  "jwtfederationsources",
		"name":          "clientname displayname",
		"redirect":      "callback callbacks",
		"redirect_uris": "spa web",
		"uri":           "url urls",
	} {
		if slices.Contains(strings.Fields(names), name) {
			return here
		}
	}
	return ""
}

var (
	wordInName = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)
	// qualifier matches what other systems put before the names of fields.
	qualifier = regexp.MustCompile(`^(allowed|valid|authorized|registered|web|spa|login|oauth2?|oidc)[_.-]?`)
)

// fieldWithWords returns a field with all words of a name, or words that they are prefixes of, in order; required
// fields come first. Words of other APIs count as those of this one. It returns "" if there is none.
func (o *Operation) fieldWithWords(name string) (found string) {
	words := wordInName.FindAllString(qualifier.ReplaceAllString(name, ""), -1)
	for i, word := range words {
		word = strings.ToLower(word)
		words[i] = cmp.Or(otherSystems(word), word)
	}
	hasWords := regexp.MustCompile("(^|_)" + strings.Join(words, ".*_"))
	for _, field := range o.fields {
		switch isFound := len(words) > 0 && hasWords.MatchString(field.name); {
		case isFound && field.required:
			return field.name
		case isFound:
			found = cmp.Or(found, field.name)
		}
	}
	return found
}

// SuggestPath returns the path of the operation that a caller most likely meant; "" if none is similar.
func (d *Document) SuggestPath(path string) string {
	if len(path) > maxSimilarLength {
		return ""
	}
	var paths []string
	for _, op := range d.operations {
		known := strings.TrimSuffix(op.Path, "/")
		isCut := len(path) > 1 && strings.HasSuffix(known, strings.TrimSuffix(path, "/"))
		isNeighbor := strings.Contains(path, "workspace") && strings.Contains(known, "workspace")
		if isCut || isNeighbor || strings.Contains(path, strings.TrimPrefix(known, d.BaseURL)) {
			return op.Path
		}
		paths = append(paths, op.Path)
	}
	return MostSimilar(path, paths)
}

const (
	// maxSimilarLength limits the length of names that are compared, in bytes.
	maxSimilarLength = 64
	// maxEdits limits how many characters can differ.
	maxEdits = 2
)

// MostSimilar returns the known name most similar to a name, in any letter case and with any separators; "" if none is.
func MostSimilar(name string, known []string) string {
	if len(name) > maxSimilarLength {
		return ""
	}
	plain := plainName(name)
	for edits := range maxEdits + 1 {
		for _, other := range known {
			// In short names, a few edits make any name similar.
			if edits < cmp.Or(len(plain)/2, 1) && isWithin(edits, plain, plainName(other)) {
				return other
			}
		}
	}
	return ""
}

func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// isWithin reports whether so many edits turn one text into the other, swaps included (optimal string alignment).
func isWithin(edits int, a, b string) bool {
	for a != "" && strings.HasPrefix(b, a[:1]) {
		a, b = a[1:], b[1:]
	}
	switch {
	case a == "" || b == "" || edits == 0:
		return len(a)+len(b) <= edits
	case len(a) > 1 && strings.HasPrefix(b, a[1:2]+a[:1]) && isWithin(edits-1, a[2:], b[2:]):
		return true
	default:
		return isWithin(edits-1, a[1:], b) || isWithin(edits-1, a, b[1:]) || isWithin(edits-1, a[1:], b[1:])
	}
}
