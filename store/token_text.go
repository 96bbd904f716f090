package store

import (
	"crypto/rand"
	"hash/crc32"
	"strings"
)

// The text of a token: a prefix that scanners for leaked secrets look for, random characters, and a checksum that tells
// a token from a look-alike without the database.
const (
	tokenPrefix         = "pvd_"
	tokenRandomLength   = 34
	tokenChecksumLength = 6
	tokenLength         = len(tokenPrefix) + tokenRandomLength + tokenChecksumLength
	// tokenPrefixShown is how many random characters a token list shows.
	tokenPrefixShown = 6
)

func newTokenText() string {
	random := RandomAlphanumeric(tokenRandomLength)
	return tokenPrefix + random + tokenChecksum(random)
}

// IsTokenText tells whether text has the form of a token: "pvd_", then 40 characters of [0-9A-Za-z], the last 6 of
// which are the CRC-32 (IEEE) of the 34 before them, written with 62 digits.
func IsTokenText(text string) bool {
	if len(text) != tokenLength || !strings.HasPrefix(text, tokenPrefix) {
		return false
	}
	random := text[len(tokenPrefix) : len(tokenPrefix)+tokenRandomLength]
	return IsAlphanumeric(random) && text[tokenLength-tokenChecksumLength:] == tokenChecksum(random)
}

func tokenChecksum(random string) string {
	sum := crc32.ChecksumIEEE([]byte(random))
	digits := make([]byte, tokenChecksumLength)
	for i := tokenChecksumLength - 1; i >= 0; i-- {
		digits[i] = alphanumeric[sum%uint32(len(alphanumeric))]
		sum /= uint32(len(alphanumeric))
	}
	return string(digits)
}

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// IsAlphanumeric tells whether a text has no characters but those of RandomAlphanumeric.
func IsAlphanumeric(text string) bool { return strings.Trim(text, alphanumeric) == "" }

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
