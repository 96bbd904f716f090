// Package seal encrypts secrets at rest, and prevents them from leaking by accident. It does not know the database:
// callers name the Place that a sealed secret is bound to, and store it.
//
// Start with Keys, the data keys of a database, which seal and unseal. The database stores them as Wrapped, encrypted
// with a key of MasterKeys, the keyset file. Secret is the cleartext.
package seal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// redacted is what every formatter prints instead of a secret.
const redacted = "[secret]"

var errSecretMarshaled = errors.New("a secret cannot be marshaled")

// Secret is a string that cannot be printed, formatted, logged or marshaled by accident. Only Reveal returns it.
type Secret struct {
	// fmt prints unexported fields of unexported fields, but only the address of a pointer.
	text *string
}

// NewSecret returns a Secret with a value. It is the zero Secret if the value is empty.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	kept := text
	return Secret{text: &kept}
}

// Reveal returns the text, "" for the zero Secret. The linter checks that only the code that builds responses calls it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Equal reports whether two secrets have the same text.
func (s Secret) Equal(other Secret) bool {
	return s.text == other.text || s.text != nil && other.text != nil && *s.text == *other.text
}

// Format prints a placeholder for any verb (fmt.Formatter).
func (Secret) Format(state fmt.State, _ rune) { _, _ = fmt.Fprint(state, redacted) }

// LogValue returns a placeholder (slog.LogValuer).
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText always returns an error, as JSON does for it.
func (Secret) MarshalText() ([]byte, error) { return nil, errSecretMarshaled }

// MarshalBinary always returns an error.
func (Secret) MarshalBinary() ([]byte, error) { return nil, errSecretMarshaled }

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
