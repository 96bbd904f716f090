package store_test

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"example.com/providerd/store"
)

func TestRandomAlphanumericIsUniform(t *testing.T) {
	t.Parallel()
	const perCharacter = 2000
	counts := map[rune]int{}
	for _, r := range store.RandomAlphanumeric(62 * perCharacter) {
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
	if !regexp.MustCompile(`^[0-9A-Za-z]{40}$`).MatchString(store.RandomAlphanumeric(40)) {
		t.Error("text is not 40 letters and digits")
	}
}

// Replacing, omitting or doubling a character, or swapping two neighbors, is detected without the database.
func TestTokenTextDetectsEverySingleError(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := store.NewTokenText()
		if !regexp.MustCompile(`^pvd_[0-9A-Za-z]{40}$`).MatchString(text) || !store.IsTokenText(text) {
			t.Fatalf("%q does not have the form of a token", text)
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		var changed []string
		for with := range 256 {
			character := string([]byte{byte(with)})
			changed = append(changed, text[:at]+character+text[at+1:], text[:at]+character+text[at:])
		}
		changed = append(changed, text[:at], text[:at]+text[at+1:], text+text[at:], text[at:]+text[:at])
		if at > 0 {
			changed = append(changed, text[:at-1]+text[at:at+1]+text[at-1:at]+text[at+1:])
		}
		for _, typed := range changed {
			if store.IsTokenText(typed) != (typed == text) {
				t.Errorf("%q is accepted for the token %q", typed, text)
			}
		}
	})
}
