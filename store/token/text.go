package token

import (
	"hash/crc32"
	"strings"

	"example.com/providerd/store/seal"
)

// The text of a token: a prefix that secret scanners can search for, random characters, and a checksum that detects
// mistyped tokens without a query.
const (
	prefix         = "pvd_"
	randomLength   = 34
	checksumLength = 6
	length         = len(prefix) + randomLength + checksumLength
	// shownLength is the number of random characters in Token.Prefix.
	shownLength = 6
)

func newText() string {
	random := seal.RandomAlphanumeric(randomLength)
	sum := checksum(random)
	return prefix + random + string(sum[:])
}

// IsText reports whether text has the form of a token: "pvd_", then 40 characters of [0-9A-Za-z], the last 6 of
// which are the CRC-32 (IEEE) of the 34 before them, in base 62.
func IsText(text string) bool {
	if len(text) != length || !strings.HasPrefix(text, prefix) {
		return false
	}
	random := text[len(prefix) : len(prefix)+randomLength]
	sum := checksum(random)
	return strings.Trim(random, seal.Alphanumeric) == "" && text[length-checksumLength:] == string(sum[:])
}

func checksum(random string) (digits [checksumLength]byte) {
	sum := crc32.ChecksumIEEE([]byte(random))
	for i := checksumLength - 1; i >= 0; i-- {
		digits[i] = seal.Alphanumeric[sum%uint32(len(seal.Alphanumeric))]
		sum /= uint32(len(seal.Alphanumeric))
	}
	return digits
}
