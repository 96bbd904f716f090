package doctor

import (
	"iter"
	"os"
	"slices"
	"strings"

	"example.com/providerd/server/contract"
)

const variablePrefix = "PROVIDERD_"

// UnknownVariables says of each variable of the environment that begins with PROVIDERD_ but is not among the known ones
// that it is set. The remedy names the known variable that is most similar; it is "" if none is similar.
func UnknownVariables(known []string) iter.Seq2[string, string] {
	// With the prefix, even short names would be similar.
	suffixes := make([]string, len(known))
	for i, name := range known {
		suffixes[i] = strings.TrimPrefix(name, variablePrefix)
	}
	return func(yield func(problem, remedy string) bool) {
		for _, variable := range slices.Sorted(slices.Values(os.Environ())) {
			name, _, _ := strings.Cut(variable, "=")
			suffix, isOurs := strings.CutPrefix(name, variablePrefix)
			if !isOurs || slices.Contains(known, name) {
				continue
			}
			remedy := ""
			if similar := contract.MostSimilar(suffix, suffixes); similar != "" {
				remedy = "did you mean " + variablePrefix + similar + "?"
			}
			if !yield(name+" is set, but providerd has no such variable", remedy) {
				return
			}
		}
	}
}
