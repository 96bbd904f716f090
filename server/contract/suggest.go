package contract

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
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
	if meant := cmp.Or(MostSimilar(name, o.FieldNames()), o.fieldWithWords(name)); meant != "" {
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

var wordInName = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)

// fieldWithWords returns a field with all words of a name, or words that they are prefixes of, in order; required
// fields come first. Words of other APIs count as those of this one. It returns "" if there is none.
func (o *Operation) fieldWithWords(name string) (found string) {
	words := wordInName.FindAllString(name, -1)
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
