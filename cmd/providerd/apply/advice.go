package apply

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

// adviseOAuth2 gives the advice for a body. A secret that the server would make is one of 128 random characters.
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

// adviseWorkspaceDirectory gives the advice for a body.
func adviseWorkspaceDirectory(body []byte) ([]advice.Advice, error) {
	var settings store.WorkspaceDirectorySettings
	if _, err := readSettings(body, &settings); err != nil {
		return nil, err
	}
	return advice.WorkspaceDirectory(settings), nil
}

// readSettings reads the settings that a body has, and tells whether it has a secret that is a string. No rule is about
// the defaults of those that it has not.
func readSettings(body []byte, settings any) (hasSecret bool, err error) {
	secrets := json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, secret *store.Secret) error {
		value, err := decoder.ReadValue()
		if err != nil || value.Kind() != '"' {
			return err //nolint:wrapcheck // It is the decoder's own.
		}
		text, err := jsontext.AppendUnquote(nil, value)
		hasSecret, *secret = true, store.NewSecret(string(text))
		return err //nolint:wrapcheck // It is the decoder's own.
	})
	// "client_type" is the name of ClientType.
	err = json.Unmarshal(body, settings, json.MatchCaseInsensitiveNames(true), json.WithUnmarshalers(secrets))
	if err != nil {
		return false, fmt.Errorf("read entry: %w", err)
	}
	return hasSecret, nil
}
