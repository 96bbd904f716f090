package apply

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

// adviseOAuth2 returns the advice for a body. If it has no secret, the server generates one of 128 random characters.
func adviseOAuth2(body []byte) ([]advice.Advice, error) {
	var settings store.OAuth2Settings
	hasSecret, err := readSettings(body, &settings)
	if err != nil {
		return nil, err
	}
	if !hasSecret && settings.ClientType != "public" {
		const length = 128
		settings.ClientSecret = store.NewSecret(store.RandomAlphanumeric(length))
	}
	return advice.OAuth2(settings), nil
}

// adviseWorkspaceDirectory returns the advice for a body.
func adviseWorkspaceDirectory(body []byte) ([]advice.Advice, error) {
	var settings store.WorkspaceDirectorySettings
	if _, err := readSettings(body, &settings); err != nil {
		return nil, err
	}
	return advice.WorkspaceDirectory(settings), nil
}

// readSettings parses the settings in a body, and reports whether it has a client_secret. Defaults are not applied,
// because no rule is about them.
func readSettings(body []byte, settings any) (hasSecret bool, err error) {
	secrets := json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, secret *store.Secret) error {
		value, err := decoder.ReadValue()
		if err == nil && value.Kind() == '{' {
			*secret = store.NewSecret(string(value))
			return nil
		}
		if err != nil || value.Kind() != '"' {
			return err //nolint:wrapcheck // The decoder adds the position.
		}
		text, err := jsontext.AppendUnquote(nil, value)
		hasSecret, *secret = true, store.NewSecret(string(text))
		return err //nolint:wrapcheck // The decoder adds the position.
	})
	// "client_type" is the name of ClientType.
	err = json.Unmarshal(body, settings, json.MatchCaseInsensitiveNames(true), json.WithUnmarshalers(secrets))
	if err != nil {
		return false, fmt.Errorf("read entry: %w", err)
	}
	return hasSecret, nil
}
