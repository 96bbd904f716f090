package store

import "crypto/rand"

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// RandomAlphanumeric returns n characters of [0-9A-Za-z], each drawn with equal probability from crypto/rand.
func RandomAlphanumeric(n int) string {
	// Of the 64 numbers that 6 bits can be, the two beyond the alphabet are drawn again.
	const sixBits = 1<<6 - 1
	text := make([]byte, 0, n)
	random := make([]byte, n+n/8)
	for len(text) < n {
		rand.Read(random)
		for _, b := range random {
			if number := int(b & sixBits); number < len(alphanumeric) && len(text) < n {
				text = append(text, alphanumeric[number])
			}
		}
	}
	return string(text)
}
