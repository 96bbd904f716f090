package seal_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/providerd/store/seal"
)

// hidden holds a secret in an unexported field, whose methods fmt cannot call.
type hidden struct{ secret seal.Secret }

// settings hold a secret in an exported field, as those of a provider do.
type settings struct{ Secret seal.Secret }

func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := canary + rapid.String().Draw(t, "text")
		secret := seal.NewSecret(text)
		holder := settings{secret}
		var log bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
			slog.New(handler).Info("x", "secret", secret, "pointer", &secret, "settings", holder, "hidden", hidden{secret})
		}
		printed := log.String()
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%T", "%w"} {
			for _, value := range []any{
				secret, &secret,
				[]seal.Secret{secret},
				map[string]any{"x": secret},
				holder, &holder,
				hidden{secret},
				&hidden{secret},
				[]hidden{{secret}},
				struct{ Any any }{secret},
			} {
				printed += fmt.Sprintf(verb, value)
			}
		}
		printed += fmt.Sprint(secret) + fmt.Errorf("x: %v", secret).Error() + errors.Join(fmt.Errorf("%+v", holder)).Error()
		for _, trace := range []string{canary, fmt.Sprintf("%x", canary)} {
			if strings.Contains(strings.ToLower(printed), trace) {
				t.Fatalf("%q is in %q", trace, printed)
			}
		}
		if secret.Reveal() != text {
			t.Fatalf("Reveal gives %q, not %q", secret.Reveal(), text)
		}
	})
}

func TestSecretIsNotMarshaled(t *testing.T) {
	t.Parallel()
	secret := seal.NewSecret(canary)
	for name, marshal := range map[string]func(value any) ([]byte, error){
		"json": json.Marshal,
		"xml":  xml.Marshal,
		"gob": func(value any) ([]byte, error) {
			var buffer bytes.Buffer
			err := gob.NewEncoder(&buffer).Encode(value)
			return buffer.Bytes(), err
		},
	} {
		for _, value := range []any{secret, &secret, settings{secret}} {
			text, err := marshal(value)
			if err == nil || strings.Contains(string(text), canary) {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
}
