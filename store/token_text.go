package store

import (
	"crypto/rand"
	"hash/crc32"
	"strings"
)

// The text of a token: a prefix that secret scanners can search for, random characters, and a checksum that detects
// mistyped tokens without a query.
const (
	tokenPrefix         = "pvd_"
	tokenRandomLength   = 34
	tokenChecksumLength = 6
	tokenLength         = len(tokenPrefix) + tokenRandomLength + tokenChecksumLength
	// tokenPrefixShown is the number of random characters in Token.Prefix.
	tokenPrefixShown = 6
)

func newTokenText() string {
	random := RandomAlphanumeric(tokenRandomLength)
	checksum := tokenChecksum(random)
	return tokenPrefix + random + string(checksum[:])
}

// IsTokenText reports whether text has the form of a token: "pvd_", then 40 characters of [0-9A-Za-z], the last 6 of
// which are the CRC-32 (IEEE) of the 34 before them, in base 62.
func IsTokenText(text string) bool {
	if len(text) != tokenLength || !strings.HasPrefix(text, tokenPrefix) {
		return false
	}
	random := text[len(tokenPrefix) : len(tokenPrefix)+tokenRandomLength]
	checksum := tokenChecksum(random)
	return isAlphanumeric(random) && text[tokenLength-tokenChecksumLength:] == string(checksum[:])
}

func tokenChecksum(random string) (digits [tokenChecksumLength]byte) {
	sum := crc32.ChecksumIEEE([]byte(random))
	for i := tokenChecksumLength - 1; i >= 0; i-- {
		digits[i] = alphanumeric[sum%uint32(len(alphanumeric))]
		sum /= uint32(len(alphanumeric))
	}
	return digits
}

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// isAlphanumeric reports whether text consists of the characters of RandomAlphanumeric.
func isAlphanumeric(text string) bool { return strings.Trim(text, alphanumeric) == "" }

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
			if number := int(b & sixBits); number < len(alphanumeric) && text.Len() < n {
				text.WriteByte(alphanumeric[number])
			}
		}
	}
	return text.String()
}
