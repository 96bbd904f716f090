package store

import (
	"hash/crc32"
	"strings"

	"example.com/providerd/store/seal"
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
	random := seal.RandomAlphanumeric(tokenRandomLength)
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
	return strings.Trim(random, seal.Alphanumeric) == "" && text[tokenLength-tokenChecksumLength:] == string(checksum[:])
}

func tokenChecksum(random string) (digits [tokenChecksumLength]byte) {
	sum := crc32.ChecksumIEEE([]byte(random))
	for i := tokenChecksumLength - 1; i >= 0; i-- {
		digits[i] = seal.Alphanumeric[sum%uint32(len(seal.Alphanumeric))]
		sum /= uint32(len(seal.Alphanumeric))
	}
	return digits
}
