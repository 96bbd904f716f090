package seal

import "strings"

// Traits are what may be told of a secret without giving it away: whether it is a weak one.
type Traits struct {
	// Bytes is the length, and Distinct how many different bytes there are.
	Bytes, Distinct int
	// IsPrintable tells that all characters are printable ASCII, the VSCHAR of RFC 6749, appendix A.
	IsPrintable bool
}

// Traits tells what the secret is like.
func (s Secret) Traits() Traits {
	if s.text == nil {
		return Traits{IsPrintable: true}
	}
	text := *s.text
	var seen [256]bool
	traits := Traits{
		Bytes:       len(text),
		IsPrintable: !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }),
	}
	for i := range len(text) {
		if !seen[text[i]] {
			seen[text[i]] = true
			traits.Distinct++
		}
	}
	return traits
}
