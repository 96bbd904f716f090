// Package seal encrypts secrets at rest, and prevents them from leaking by accident. It does not know the database:
// callers name the Place that a sealed secret is bound to, and store it.
//
// Start with Keys, the data keys of a database, which seal and unseal. The database stores them as Wrapped, encrypted
// with a key of MasterKeys, the keyset file. Secret is the cleartext.
package seal

import (
	"errors"
	"fmt"
	"log/slog"
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
