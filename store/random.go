package store

import "crypto/rand"

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// RandomAlphanumeric returns n characters of [0-9A-Za-z], each drawn with equal probability from crypto/rand.
func RandomAlphanumeric(n int) string {
	// A byte at or above this bound would favour the first characters of the alphabet, so it is drawn again.
	const bound = 256 - 256%len(alphanumeric)
	text := make([]byte, 0, n)
	random := make([]byte, n+n/2)
	for {
		rand.Read(random)
		for _, b := range random {
			if len(text) == n {
				return string(text)
			}
			if int(b) < bound {
				text = append(text, alphanumeric[int(b)%len(alphanumeric)])
			}
		}
	}
}
