package seal

import "strings"

// Traits describe the strength of a secret without revealing it.
type Traits struct {
	// Bytes is the length, and Distinct the number of different bytes.
	Bytes, Distinct int
	// IsPrintable reports whether all characters are printable ASCII (VSCHAR, RFC 6749, appendix A).
	IsPrintable bool
}

// Traits returns the traits of the secret.
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
