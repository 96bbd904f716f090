// Package seal encrypts secrets at rest with the keys of a keyset file, and keeps them from leaving by accident. It
// knows no database: what is sealed is bound to a Place, which the caller names, and the caller stores it.
//
// Start with Keys in keys.go, which seals and unseals; Keyring in keyring.go is the file that they come from, and
// steps.go and retire.go change it. Secret, below, is the text itself.
package seal

import (
	"errors"
	"fmt"
	"log/slog"
)

// redacted is what is seen of a secret by everyone but those who reveal it.
const redacted = "[secret]"

// errSecretMarshaled keeps a secret from leaving by accident, whatever the encoding.
var errSecretMarshaled = errors.New("a secret cannot be marshaled")

// Secret is a text that cannot be printed, formatted, logged or marshalled by accident. Only Reveal gives it away.
type Secret struct {
	// A pointer, because fmt prints the private fields of a private field, and of a pointer there just the address.
	text *string
}

// NewSecret wraps a text. That of "" is the zero value.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{text: &text}
}

// Reveal returns the text; "" for the zero value. Only the converters of an answer call it, which the linter checks.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Format prints the same for any verb (fmt.Formatter).
func (Secret) Format(state fmt.State, _ rune) { _, _ = fmt.Fprint(state, redacted) }

// LogValue logs nothing of the text (slog.LogValuer).
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON fails always.
func (Secret) MarshalJSON() ([]byte, error) { return nil, errSecretMarshaled }

// MarshalText fails always.
func (Secret) MarshalText() ([]byte, error) { return nil, errSecretMarshaled }

// MarshalBinary fails always.
func (Secret) MarshalBinary() ([]byte, error) { return nil, errSecretMarshaled }
