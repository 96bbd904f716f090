package advice

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store"
)

const (
	// shortSecret is the length at which random letters and digits have 128 bits of entropy.
	shortSecret = 22
	// hmacKey is the length of a key for HS256, in bytes.
	hmacKey = 32
	// fewDistinct is a number of distinct bytes that random texts have, even hexadecimal ones.
	fewDistinct = 8

	longCode         = 10 * time.Minute
	longAccessToken  = 24 * time.Hour
	longRefreshToken = 365 * 24 * time.Hour
)

// client is the input of the rules for OAuth2 providers.
type client struct {
	store.OAuth2Settings
	redirectURIs []redirectURI
	secret       string
}

// newClient returns the input of the rules for OAuth2 providers.
func newClient(s store.OAuth2Settings) client {
	return client{s, parseRedirectURIs(s.RedirectURIs), s.ClientSecret.Reveal()}
}

func (c client) isPublic() bool { return c.ClientType == "public" }

func (c client) isNativeButConfidential() bool {
	return !c.isPublic() && slices.ContainsFunc(c.redirectURIs, redirectURI.isNative)
}

func (c client) hasNeedlessSecret() bool { return c.isPublic() && len(c.secret) > 0 }

func (c client) hasEmptySecret() bool { return !c.isPublic() && len(c.secret) == 0 }

func (c client) hasShortSecret() bool {
	length := len(c.secret)
	return !c.isPublic() && length > 0 && length < shortSecret
}

func (c client) hasSecretTooShortToSign() bool {
	length := len(c.secret)
	return !c.isPublic() && c.SigningKey == nil && length >= shortSecret && length < hmacKey
}

func (c client) hasRepetitiveSecret() bool {
	distinct := map[byte]bool{}
	for i := range len(c.secret) {
		distinct[c.secret[i]] = true
	}
	return !c.isPublic() && len(c.secret) >= shortSecret && len(distinct) < fewDistinct
}

// hasNothingToSignWith is false for a confidential client with a secret, which is what a create without options makes.
func (c client) hasNothingToSignWith() bool {
	return c.SigningKey == nil && (c.isPublic() || c.hasEmptySecret())
}

func (c client) isPublicWithoutRedirectURI() bool { return c.isPublic() && len(c.redirectURIs) == 0 }

func (c client) hasReassignableSubject() bool {
	return slices.Contains([]string{"user_email", "user_upn", "user_username"}, c.SubMode)
}

func isNil(id *uuid.UUID) bool { return id != nil && *id == uuid.Nil }
