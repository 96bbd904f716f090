package contract

import (
	"cmp"
	"fmt"
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
	if path, ok := o.elsewhere[plainName(name)]; ok {
		return fmt.Sprintf("is a field of POST %s, not of this request; omit it", path)
	}
	if meant := otherSystems(plainName(name)); o.body.Properties[meant] != nil {
		if values := allowedValues(o.body.Properties[meant].Value); values != "" {
			meant += ", which is " + strings.ReplaceAll(values, ", ", " or ")
		}
		return fmt.Sprintf("is not a field of this request; did you mean %s?", meant)
	}
	fields := make([]string, len(o.fields))
	for i, field := range o.fields {
		fields[i] = field.name
	}
	if meant := cmp.Or(MostSimilar(name, fields), o.fieldWithWords(name)); meant != "" {
		return fmt.Sprintf("is not a field of this request; did you mean %s?", meant)
	}
	return notAField
}

// otherSystems returns what a word, or the plain name of a field, of another system is here; "" if it is not known.
func otherSystems(name string) string {
	const clientType = "client_type"
	return map[string]string{
		"callback":             "redirect",
		"callbacks":            "redirect",
		"clientname":           "name",
		"displayname":          "name",
		"ispublic":             clientType,
		"jwtfederationsources": "jwks_sources",
		"public":               clientType,
		"publicclient":         clientType,
		"url":                  "uri",
		"urls":                 "uri",
	}[name]
}

// fieldWithWords returns a field with all words of a name, or words that they are prefixes of, in order; required
// fields come first. It returns "" if there is none.
func (o *Operation) fieldWithWords(name string) (found string) {
	words := wordsOf(name)
	for _, field := range o.fields {
		if !hasWords(field.name, words) {
			continue
		}
		if field.required {
			return field.name
		}
		found = cmp.Or(found, field.name)
	}
	return found
}

// wordsOf returns the words of a name in lower case, with terms of other APIs replaced by those of this one.
func wordsOf(name string) []string {
	var spaced strings.Builder
	isLower := false
	for _, r := range name {
		if isLower && unicode.IsUpper(r) {
			spaced.WriteByte('_')
		}
		isLower = unicode.IsLower(r)
		spaced.WriteRune(unicode.ToLower(r))
	}
	words := strings.FieldsFunc(spaced.String(), func(r rune) bool { return !unicode.IsLetter(r) })
	for i, word := range words {
		words[i] = cmp.Or(otherSystems(word), word)
	}
	return words
}

// hasWords reports whether each word is a prefix of one of the field's, in order.
func hasWords(field string, words []string) bool {
	found := 0
	for word := range strings.SplitSeq(field, "_") {
		if found < len(words) && strings.HasPrefix(word, words[found]) {
			found++
		}
	}
	return found > 0 && found == len(words)
}

// SuggestPath returns the path of the operation that a caller most likely meant; "" if none is similar.
func (d *Document) SuggestPath(path string) string {
	if len(path) > maxSimilarLength {
		return ""
	}
	var paths []string
	for _, op := range d.operations {
		known := op.Path
		rest, isBelow := strings.CutPrefix(path, known)
		isCut := len(path) > 1 && strings.HasSuffix(known, strings.TrimSuffix(path, "/")+"/")
		if isCut || strings.HasSuffix(path, known) || isBelow && isNumber(strings.TrimSuffix(rest, "/")) {
			return known
		}
		paths = append(paths, known)
	}
	return MostSimilar(path, paths)
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
