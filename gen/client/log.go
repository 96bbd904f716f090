package client

import "log/slog"

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
	p.Credentials = maskedJSON()
	return slog.AnyValue(masked(p))
}

// LogValue returns the request with the credentials masked (slog.LogValuer).
func (r WorkspaceDirectoryProviderRequest) LogValue() slog.Value {
	type masked WorkspaceDirectoryProviderRequest
	r.Credentials = maskedJSON()
	return slog.AnyValue(masked(r))
}

func maskedJSON() SecretJSON { return NewSecretJSON(`"` + mask + `"`) }
