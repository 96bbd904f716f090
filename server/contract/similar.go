package contract

import (
	"cmp"
	"strings"
	"unicode"
)

const (
	// maxSimilarLength limits the length of names that are compared, in bytes.
	maxSimilarLength = 64
	// maxEdits limits how many characters can differ.
	maxEdits = 2
)

// MostSimilar returns the known name that is most similar to a name; "" if none is similar. Letter case and
// separators of words are ignored.
func MostSimilar(name string, known []string) string {
	if len(name) > maxSimilarLength {
		return ""
	}
	plain := plainName(name)
	nearest, fewest := "", maxEdits+1
	for _, other := range known {
		// In short names, a few edits make any name similar.
		if edits := editDistance(plain, plainName(other)); edits < fewest && edits < cmp.Or(len(plain)/2, 1) {
			nearest, fewest = other, edits
		}
	}
	return nearest
}

func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// editDistance returns the least number of insertions, deletions, replacements and swaps of adjacent bytes that turn
// one text into the other (optimal string alignment). If the lengths differ too much, it returns more than maxEdits.
func editDistance(a, b string) int {
	if max(len(a)-len(b), len(b)-len(a)) > maxEdits {
		return maxEdits + 1
	}
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			replaced := row[j]
			if a[i] != b[j] {
				replaced++
			}
			next[j+1] = min(replaced, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
