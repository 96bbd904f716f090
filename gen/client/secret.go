package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
)

// mask replaces every secret that is printed or logged.
const mask = "********"

// hidden is a string that fmt and slog do not print.
type hidden struct {
	// Makes == of secrets a compile-time error; it would compare addresses.
	_ [0]func()
	// A pointer, because fmt prints unexported fields of unexported fields, but only the address of pointers there.
	text *string
}

func hide[Text ~string | ~[]byte](text Text) hidden {
	if len(text) == 0 {
		return hidden{}
	}
	return hidden{text: new(string(text))}
}

// Format prints the mask, which does not reveal the length (fmt.Formatter).
func (hidden) Format(state fmt.State, _ rune) { _, _ = fmt.Fprint(state, mask) }

// LogValue logs the mask (slog.LogValuer).
func (hidden) LogValue() slog.Value { return slog.StringValue(mask) }

// Secret is a client secret. fmt prints it as ******** with every verb, alone or inside another value, and reveals
// nothing with %p, %T and %w either. Reveal returns the text. JSON has the text itself, so a slog.JSONHandler masks a
// Secret, a record or a request that it logs, but not one inside another value.
type Secret struct{ hidden }

// NewSecret returns a secret text; the zero value for "".
func NewSecret(text string) Secret { return Secret{hide(text)} }

// Reveal returns the text; "" for the zero value.
func (s Secret) Reveal() string { return *cmp.Or(s.text, new(string)) }

// MarshalJSON returns the text as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) {
	return json.Marshal(s.Reveal()) //nolint:wrapcheck // A string has no error.
}

// UnmarshalJSON reads a JSON string; null changes nothing. Its error does not quote the input.
func (s *Secret) UnmarshalJSON(text []byte) error {
	revealed := s.Reveal()
	if json.Unmarshal(text, &revealed) != nil {
		return errors.New("a secret must be a string")
	}
	*s = NewSecret(revealed)
	return nil
}

// SecretJSON is secret JSON, such as the credentials of a directory. It is masked like a Secret.
type SecretJSON struct{ hidden }

// NewSecretJSON returns the secret text of a JSON value, such as the content of a credentials file.
func NewSecretJSON[Text ~string | ~[]byte](text Text) SecretJSON { return SecretJSON{hide(text)} }

// Reveal returns the text unchanged, including all digits of numbers; nil for the zero value.
func (s SecretJSON) Reveal() json.RawMessage {
	if s.text == nil {
		return nil
	}
	return json.RawMessage(*s.text)
}

// MarshalJSON returns the text; null for the zero value.
func (s SecretJSON) MarshalJSON() ([]byte, error) {
	return s.Reveal().MarshalJSON() //nolint:wrapcheck // A string has no error.
}

// UnmarshalJSON keeps the text.
func (s *SecretJSON) UnmarshalJSON(text []byte) error {
	*s = NewSecretJSON(text)
	return nil
}

// LogValue returns the record with the secret masked (slog.LogValuer).
func (p OAuth2Provider) LogValue() slog.Value {
	type masked OAuth2Provider
	p.ClientSecret = NewSecret(mask)
	return slog.AnyValue(masked(p))
}

// LogValue returns the request with the secret masked (slog.LogValuer).
func (r OAuth2ProviderRequest) LogValue() slog.Value {
	type masked OAuth2ProviderRequest
	if r.ClientSecret != nil {
		r.ClientSecret = new(NewSecret(mask))
	}
	return slog.AnyValue(masked(r))
}

// LogValue returns the record with the credentials masked (slog.LogValuer).
func (p WorkspaceDirectoryProvider) LogValue() slog.Value {
	type masked WorkspaceDirectoryProvider
	p.Credentials = NewSecretJSON(`"` + mask + `"`)
	return slog.AnyValue(masked(p))
}

// LogValue returns the request with the credentials masked (slog.LogValuer).
func (r WorkspaceDirectoryProviderRequest) LogValue() slog.Value {
	type masked WorkspaceDirectoryProviderRequest
	r.Credentials = NewSecretJSON(`"` + mask + `"`)
	return slog.AnyValue(masked(r))
}
