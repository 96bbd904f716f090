package seal_test

import (
	"regexp"
	"testing"

	"example.com/providerd/store/seal"
)

func TestRandomAlphanumericIsUniform(t *testing.T) {
	t.Parallel()
	const perCharacter = 2000
	counts := map[rune]int{}
	for _, r := range seal.RandomAlphanumeric(62 * perCharacter) {
		counts[r]++
	}
	if len(counts) != 62 {
		t.Errorf("%d different characters, want 62", len(counts))
	}
	// Six standard deviations of the binomial distribution are about 270.
	for r, count := range counts {
		if count < perCharacter-270 || count > perCharacter+270 {
			t.Errorf("%q occurs %d times, want about %d", r, count, perCharacter)
		}
	}
	if !regexp.MustCompile(`^[0-9A-Za-z]{40}$`).MatchString(seal.RandomAlphanumeric(40)) {
		t.Error("text is not 40 letters and digits")
	}
}
