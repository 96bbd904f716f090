package server

import (
	"cmp"
	"strings"
)

const (
	// maxSuggestions is for how many unknown fields a known one is looked for. Whoever errs more often errs in the
	// request.
	maxSuggestions = 20
	// maxSuggestionLength bounds the names that are compared, in bytes.
	maxSuggestionLength = 64
	// maxEdits is how many characters may differ.
	maxEdits = 2
)

// similarField returns the field that a caller most likely meant by a name; "" where none is near.
func (o operation) similarField(name string) string {
	fields := make([]string, len(o.fields))
	for i, field := range o.fields {
		fields[i] = field.name
	}
	return mostSimilar(name, fields)
}

// mostSimilar returns the one of the known names that is nearest to a name; "" where none is near. Letter case and the
// ways to join words count for nothing.
func mostSimilar(name string, known []string) string {
	if len(name) > maxSuggestionLength {
		return ""
	}
	nearest, fewest := "", maxEdits+1
	for _, one := range known {
		a, b := plainName(name), plainName(one)
		// In short names a few edits lead anywhere.
		if edits := editDistance(a, b); edits < fewest && edits < cmp.Or(len(a)/2, 1) {
			nearest, fewest = one, edits
		}
	}
	return nearest
}

func plainName(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// editDistance is the least number of bytes to insert, delete or replace that makes one text of the other
// (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
