package seal

import (
	"crypto/rand"
	"strings"
)

// Alphanumeric is the characters of RandomAlphanumeric, in the order of their codes.
const Alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// RandomAlphanumeric returns n characters of [0-9A-Za-z], each drawn with equal probability from crypto/rand.
func RandomAlphanumeric(n int) string {
	// Of the 64 values of 6 bits, the two beyond the alphabet are discarded, so that no character is more likely.
	const sixBits = 1<<6 - 1
	var text strings.Builder
	text.Grow(n)
	var bytes [128 + 16]byte
	random := bytes[:min(n+n/8, len(bytes))]
	for text.Len() < n {
		rand.Read(random)
		for _, b := range random {
			if number := int(b & sixBits); number < len(Alphanumeric) && text.Len() < n {
				text.WriteByte(Alphanumeric[number])
			}
		}
	}
	return text.String()
}
