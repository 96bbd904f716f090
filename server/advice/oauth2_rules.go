package advice

const (
	clientSecret = "/client_secret"
	redirectURIs = "/redirect_uris"

	nilUUID        = "nil_uuid"
	nilUUIDSection = "RFC 9562, section 5.9"
	// comparedExactly is where it stands that redirect URIs are compared as whole strings.
	comparedExactly = "RFC 9700, section 2.1"
	letSecretBeMade = "leave the field out, and one of 128 random letters and digits is made"
)

// oauth2Rules are in the order of the fields of the contract.
//
//nolint:funlen // A table is as long as its rows are many.
func oauth2Rules(c client) []Rule {
	return []Rule{
		{
			Code: nilUUID, Pointer: "/authentication_flow", When: "authentication_flow is the nil UUID",
			Detail: "the nil UUID stands for no flow; name the flow, or leave the field out", Section: nilUUIDSection,
			holds: isNil(c.AuthenticationFlow),
		},
		{
			Code: nilUUID, Pointer: "/authorization_flow", When: "authorization_flow is the nil UUID",
			Detail: "the nil UUID stands for no flow; name the flow that authorizes this provider", Section: nilUUIDSection,
			holds: isNil(&c.AuthorizationFlow),
		},
		{
			Code: "native_app_confidential", Pointer: "/client_type",
			When: "client_type is confidential, and a redirect URI has a scheme other than http and https",
			Detail: "such a redirect URI leads to an app on the user's device, which cannot keep a secret; set client_type " +
				"to public, or begin the URI with https://",
			Section: "RFC 8252, section 8.4",
			holds:   c.isNativeButConfidential(),
		},
		{
			Code: "client_id_unprintable", Pointer: "/client_id",
			When:    "client_id has a character other than printable ASCII",
			Detail:  "clients cannot be relied on to send such characters alike; use printable ASCII alone",
			Section: "RFC 6749, appendix A.1",
			holds:   c.hasUnprintableID(),
		},
		{
			Code: "client_secret_unprintable", Pointer: clientSecret,
			When:    "client_secret has a character other than printable ASCII",
			Detail:  "clients cannot be relied on to send such characters alike; use printable ASCII alone",
			Section: "RFC 6749, appendix A.2",
			holds:   !c.ClientSecret.Traits().IsPrintable,
		},
		{
			Code: "client_secret_needless", Pointer: clientSecret,
			When: "client_type is public, and client_secret is not empty",
			Detail: "a public client cannot keep a secret, so that one proves nothing; leave the field out, or set " +
				"client_type to confidential",
			Section: "RFC 6749, section 10.1",
			holds:   c.hasNeedlessSecret(),
		},
		{
			Code: "client_secret_empty", Pointer: clientSecret,
			When: "client_type is confidential, and client_secret is empty",
			Detail: "without a secret, whoever knows client_id can pose as the client; " + letSecretBeMade +
				", or set client_type to public",
			Section: "RFC 6749, section 2.2",
			holds:   c.hasEmptySecret(),
		},
		{
			Code: "client_secret_short", Pointer: clientSecret,
			When:    "client_type is confidential, and client_secret has 1 to 21 bytes",
			Detail:  "so short a secret can be guessed; " + letSecretBeMade,
			Section: "RFC 6749, section 10.10",
			holds:   c.hasShortSecret(),
		},
		{
			Code: "client_secret_short_for_hs256", Pointer: clientSecret,
			When: "client_type is confidential, signing_key is null, and client_secret has 22 to 31 bytes",
			Detail: "without a signing_key, tokens are signed with the secret, which takes 32 bytes at least; " +
				letSecretBeMade + ", or name a signing_key",
			Section: "OpenID Connect Core 1.0, section 16.19",
			holds:   c.hasSecretTooShortToSign(),
		},
		{
			Code: "client_secret_repetitive", Pointer: clientSecret,
			When:    "client_type is confidential, and client_secret has 22 bytes or more, but fewer than 8 different ones",
			Detail:  "a secret of so few different characters can be guessed; " + letSecretBeMade,
			Section: "RFC 6749, section 10.10",
			holds:   c.hasRepetitiveSecret(),
		},
		{
			Code: "access_code_long_lived", Pointer: "/access_code_validity",
			When:    "access_code_validity is longer than 10 minutes",
			Detail:  "a code that leaks can be used for all that time; minutes=10 is the most, and minutes=1 is enough",
			Section: "RFC 6749, section 4.1.2",
			holds:   lastsLonger(c.AccessCodeValidity, longCode),
		},
		{
			Code: "access_token_long_lived", Pointer: "/access_token_validity",
			When: "access_token_validity is longer than a day",
			Detail: "an access token that leaks can be used for all that time, and might not be revocable; use hours=1, and " +
				"refresh tokens for longer access",
			Section: "OpenID Connect Core 1.0, section 16.18",
			holds:   lastsLonger(c.AccessTokenValidity, longAccessToken),
		},
		{
			Code: "refresh_token_long_lived", Pointer: "/refresh_token_validity",
			When: "refresh_token_validity is longer than 365 days",
			Detail: "a refresh token that nobody uses is to expire, so that it is of no use to whoever finds it; use " +
				"days=30, or weeks=52 at most",
			Section: "RFC 9700, section 4.14.2",
			holds:   lastsLonger(c.RefreshTokenValidity, longRefreshToken),
		},
		{
			Code: nilUUID, Pointer: "/signing_key", When: "signing_key is the nil UUID",
			Detail: "the nil UUID stands for no key; name the key, or leave the field out", Section: nilUUIDSection,
			holds: isNil(c.SigningKey),
		},
		{
			Code: "signing_key_missing", Pointer: "/signing_key",
			When: "signing_key is null, and client_type is public or client_secret is empty",
			Detail: "without a key, tokens can only be signed with client_secret, which is empty or cannot be kept here; " +
				"name a signing_key",
			Section: "OpenID Connect Core 1.0, section 10.1",
			holds:   c.hasNothingToSignWith(),
		},
		{
			Code: "redirect_uris_missing", Pointer: redirectURIs, When: "client_type is public, and redirect_uris is empty",
			Detail:  "a public client is known by its redirect URIs alone; add each that it uses",
			Section: "RFC 6749, section 3.1.2.2",
			holds:   c.isPublicWithoutRedirectURI(),
		},
		{
			Code: "redirect_uri_malformed", Pointer: redirectURIs,
			When: "a line is no absolute URI of RFC 3986, or one of http or https without a host",
			Detail: "must be an absolute URI such as https://app.example.com/callback, of printable ASCII; percent-encode " +
				"other characters",
			Section: "RFC 6749, section 3.1.2",
			lines:   c.linesWith(func(u redirectURI) bool { return u.isMalformed }),
		},
		{
			Code: "redirect_uri_http", Pointer: redirectURIs, When: "a line has the scheme http and a host other than loopback",
			Detail:  "http sends the code over the network unencrypted; use https",
			Section: "RFC 9700, section 2.6",
			lines:   c.linesWith(redirectURI.isUnencrypted),
		},
		{
			Code: "redirect_uri_localhost", Pointer: redirectURIs,
			When: "a line has the scheme http and the host localhost, or one below it",
			Detail: "a name may lead elsewhere than to the loopback interface; use http://127.0.0.1 or http://[::1], and in " +
				"the app as well",
			Section: "RFC 8252, section 8.3",
			lines:   c.linesWith(redirectURI.isLocalhost),
		},
		{
			Code: "redirect_uri_wildcard", Pointer: redirectURIs, When: `a line has a "*"`,
			Detail: `redirect URIs are compared character for character, so that "*" stands for nothing else; list each URI ` +
				"in full",
			Section: comparedExactly,
			lines:   c.linesWith(redirectURI.hasWildcard),
		},
		{
			Code: "redirect_uri_comma", Pointer: redirectURIs, When: "a line has a comma",
			Detail:  "a comma is a part of the URI, and separates none; put each URI on a line of its own",
			Section: comparedExactly,
			lines:   c.linesWith(redirectURI.hasComma),
		},
		{
			Code: "redirect_uri_twice", Pointer: redirectURIs, When: "a line is the same as one before it",
			Detail:  "the same URI is in a line before; leave it out, or write the one that was meant",
			Section: comparedExactly,
			lines:   c.linesWith(func(u redirectURI) bool { return u.isRepeated }),
		},
		{
			Code: "redirect_uri_scheme_without_dot", Pointer: redirectURIs,
			When: "a line has a scheme other than http and https, without a dot",
			Detail: "any app can claim such a scheme; use one that is a domain of yours in reverse, such as " +
				"com.example.app:/callback, or https",
			Section: "RFC 8252, section 8.4",
			lines:   c.linesWith(redirectURI.isNativeWithoutDot),
		},
		{
			Code: "sub_mode_reassignable", Pointer: "/sub_mode",
			When: "sub_mode is user_email, user_upn or user_username",
			Detail: "a subject is never to be reassigned, but a name or an address can pass on to somebody else, who then " +
				"gets the accounts of the one before; use hashed_user_id, user_id or user_uuid",
			Section: "OpenID Connect Core 1.0, sections 2 and 5.7",
			holds:   c.hasReassignableSubject(),
		},
	}
}
