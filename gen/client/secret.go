package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
)

// mask is what is seen of every secret that is printed or logged.
const mask = "********"

// hidden is a text that is not printed.
type hidden struct {
	// Without it, == of secrets would compile, and compare addresses.
	_ [0]func()
	// A pointer, because fmt prints the private fields of a private field, and of a pointer there just the address.
	text *string
}

func hide[Text ~string | ~[]byte](text Text) hidden {
	if len(text) == 0 {
		return hidden{}
	}
	copied := string(text)
	return hidden{text: &copied}
}

func (h hidden) reveal() string {
	if h.text == nil {
		return ""
	}
	return *h.text
}

// Format prints the mask, which tells not even the length (fmt.Formatter).
func (hidden) Format(state fmt.State, _ rune) { _, _ = fmt.Fprint(state, mask) }

// LogValue logs the mask (slog.LogValuer).
func (hidden) LogValue() slog.Value { return slog.StringValue(mask) }

// Secret is a client secret. It prints as ******** by every verb of fmt, alone or within something else; of %p, %T and
// %w, which are not for values, it shows nothing either. Reveal gives it away. In JSON it is the text itself, so a
// slog.JSONHandler masks it where it logs a Secret, a record or a request, but not where one of them is inside of what
// it logs.
type Secret struct{ hidden }

// NewSecret hides a text. That of "" is the zero value.
func NewSecret(text string) Secret { return Secret{hide(text)} }

// Reveal returns the text; "" for the zero value.
func (s Secret) Reveal() string { return s.reveal() }

// MarshalJSON returns the text as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(s.Reveal())
	if err != nil {
		return nil, fmt.Errorf("marshal a secret: %w", err)
	}
	return text, nil
}

// UnmarshalJSON reads a JSON string; null changes nothing. Its error does not repeat what it is given.
func (s *Secret) UnmarshalJSON(text []byte) error {
	revealed := s.Reveal()
	if json.Unmarshal(text, &revealed) != nil {
		return errors.New("a secret is not a string")
	}
	*s = NewSecret(revealed)
	return nil
}

// SecretJSON is JSON that is a secret, such as the credentials of a directory. It is hidden as a Secret is.
type SecretJSON struct{ hidden }

// NewSecretJSON hides the text of a JSON value, such as that of a file with credentials.
func NewSecretJSON[Text ~string | ~[]byte](text Text) SecretJSON { return SecretJSON{hide(text)} }

// Reveal returns the text, numbers digit for digit; nil for the zero value.
func (s SecretJSON) Reveal() json.RawMessage {
	if s.text == nil {
		return nil
	}
	return json.RawMessage(*s.text)
}

// MarshalJSON returns the text; null for the zero value.
func (s SecretJSON) MarshalJSON() ([]byte, error) {
	text, err := s.Reveal().MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("marshal secret JSON: %w", err)
	}
	return text, nil
}

// UnmarshalJSON keeps the text.
func (s *SecretJSON) UnmarshalJSON(text []byte) error {
	*s = NewSecretJSON(text)
	return nil
}
