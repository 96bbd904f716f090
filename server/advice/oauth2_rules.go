package advice

import (
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store/records"
)

const (
	clientSecret = "/client_secret"
	redirectURIs = "/redirect_uris"

	// comparedExactly requires that redirect URIs are compared as whole strings.
	comparedExactly = "RFC 9700, section 2.1"
	omitField       = "Omit the field to get a secret of 128 random letters and digits"

	// shortSecret is the length at which random letters and digits have 128 bits of entropy.
	shortSecret = 22

	longCode, longAccessToken, longRefreshToken = 10 * time.Minute, 24 * time.Hour, 365 * 24 * time.Hour

	// The rest are parts of examples.
	public     = `"client_type": "public"`
	onTwoLines = `"redirect_uris": "https://app.example.com/a\nhttps://app.example.com/b"`
)

// oauth2Rules are in the order of the fields of the contract.
//
//nolint:gochecknoglobals // A table that is only read.
var oauth2Rules = []rule[client]{
	nilUUID("authentication_flow", "a flow, or omit the field", func(c client) *uuid.UUID { return c.AuthenticationFlow }),
	nilUUID("authorization_flow", "a flow", func(c client) *uuid.UUID { return &c.AuthorizationFlow }),
	{Rule: Rule{
		Code: "native_app_confidential", Pointer: "/client_type",
		When: "client_type is confidential, and all redirect URIs have schemes other than http and https",
		Detail: "The redirect URIs open an app on the user's device, which cannot keep a secret. Set client_type to " +
			"public, or use an https redirect URI.",
		Section: "RFC 8252, section 8.4",
		Seen:    "The secret of WordPress's app was read from its package (WordPress-Android issue 9829).",
		Bad:     `"client_type": "confidential", "redirect_uris": "com.example.app:/callback"`,
		Good:    public + `, "redirect_uris": "com.example.app:/callback"`,
	}, holds: func(c client) bool {
		native := len(linesWith(redirectURI.isNative)(c))
		return !c.isPublic() && native > 0 && native == len(c.redirectURIs)
	}},
	padded("client_id", func(c client) string { return c.ClientID }),
	unresolved("client_id", func(c client) string { return c.ClientID }),
	reserved("client_id", "contains a colon, or a character other than printable ASCII, apart from padding at its ends",
		"Use only printable ASCII, without a colon.", `"urn:shop"`, func(c client) string { return c.ClientID },
		func(id string) bool { return reservedInID.MatchString(trimPadding(id)) && !isReference(id) }),
	padded("client_secret", func(c client) string { return c.secret }),
	unresolved("client_secret", func(c client) string { return c.secret }),
	{Rule: Rule{
		Code: "client_secret_digest", Pointer: clientSecret, When: "client_secret looks like a digest or mask of a password",
		Detail: "Looks like a digest or mask. Clients send the secret itself, and will be refused. Set the secret itself. " +
			omitField + ".",
		Section: "RFC 6749, section 2.3.1",
		Seen:    "Authelia's digest, set as the secret of Nextcloud: invalid_client (nextcloud-oidc-login issue 263).",
		Bad:     `"client_secret": "$2a$10$abcdefghijklmnopqrstuv"`, Good: randomSecret,
	}, holds: func(c client) bool { return digest.MatchString(c.secret) }},
	reserved("client_secret", `of a confidential client contains a character other than letters, digits, "_.~-"`,
		omitField+".", `"JZ7h+q/4vQy8LmN1xRw6KpJ3sHd9Fb2Cg7TuE4aVb0k="`, func(c client) string {
			if c.isPublic() {
				return ""
			}
			return c.secret
		}, isEncodedDifferently),
	{Rule: Rule{
		Code: "client_secret_needless", Pointer: clientSecret, When: "client_type is public, and client_secret is not empty",
		Detail: "A public client cannot keep a secret, so a secret proves nothing. Omit the field, or set client_type to " +
			"confidential.",
		Section: "RFC 6749, section 10.1",
		Seen:    "Microsoft Entra refuses requests with one: AADSTS700025 (ms-identity-python-webapp issue 113).",
		Bad:     public + `, "client_secret": "not-secret"`, Good: public,
	}, holds: func(c client) bool { return c.isPublic() && c.secret != "" }},
	{Rule: Rule{
		Code: "client_secret_empty", Pointer: clientSecret, When: "client_type is confidential, and client_secret is empty",
		Detail: "Without a secret, anyone who knows client_id can impersonate the client. " + omitField +
			", or set client_type to public.",
		Section: "RFC 6749, section 2.2",
		Seen: "openid-client 6.9.0 refuses to use it; OpenID-Connect-PHP trusts tokens that anyone signs with it (its " +
			"issue 513).",
		Bad: `"client_type": "confidential", "client_secret": ""`, Good: `"client_type": "confidential"`,
	}, holds: func(c client) bool { return c.hasSecret(0, 1) }},
	{Rule: Rule{
		Code: "client_secret_short", Pointer: clientSecret,
		When:    "client_type is confidential, and client_secret has 1 to 21 bytes",
		Detail:  "A secret this short can be guessed. " + omitField + ".",
		Section: "RFC 6749, section 10.10",
		Seen:    "jjwt 0.13.0 refuses ID tokens that are signed (HS256) with fewer than 32 bytes.",
		Bad:     `"client_secret": "secret"`, Good: randomSecret,
	}, holds: func(c client) bool { return c.hasSecret(1, shortSecret) }},
	zero("access_code_validity", func(c client) string { return c.AccessCodeValidity }),
	{Rule: Rule{
		Code: "access_code_long_lived", Pointer: "/access_code_validity",
		When:    "access_code_validity is longer than 10 minutes",
		Detail:  "A leaked code can be used for that long. Use minutes=1, or at most minutes=10.",
		Section: "RFC 6749, section 4.1.2",
		Seen:    "oidc-provider 9.13.3 issues codes for 60 seconds.",
		Bad:     `"access_code_validity": "hours=1"`, Good: `"access_code_validity": "minutes=1"`,
	}, holds: func(c client) bool { return isLonger(c.AccessCodeValidity, longCode) }},
	zero("access_token_validity", func(c client) string { return c.AccessTokenValidity }),
	{Rule: Rule{
		Code: "access_token_long_lived", Pointer: "/access_token_validity",
		When: "access_token_validity is longer than a day",
		Detail: "A leaked access token can be used for that long, and may not be revocable. Use hours=1, and refresh " +
			"tokens for longer access.",
		Section: "OpenID Connect Core 1.0, section 16.18",
		Seen:    "April 2022: tokens stolen from Heroku and Travis CI opened private repositories on GitHub.",
		Bad:     `"access_token_validity": "weeks=1"`, Good: `"access_token_validity": "hours=1"`,
	}, holds: func(c client) bool { return isLonger(c.AccessTokenValidity, longAccessToken) }},
	zero("refresh_token_validity", func(c client) string { return c.RefreshTokenValidity }),
	{Rule: Rule{
		Code: "refresh_token_long_lived", Pointer: "/refresh_token_validity",
		When: "refresh_token_validity is longer than 365 days",
		Detail: "An unused refresh token should expire, so that it is useless to anyone who finds it. Use days=30, or " +
			"at most weeks=52.",
		Section: "RFC 9700, section 4.14.2",
		Seen:    "August 2025: refresh tokens stolen from Salesloft opened the Salesforce data of 700 organizations.",
		Bad:     `"refresh_token_validity": "weeks=500"`, Good: `"refresh_token_validity": "days=30"`,
	}, holds: func(c client) bool { return isLonger(c.RefreshTokenValidity, longRefreshToken) }},
	nilUUID("signing_key", "a key, or omit the field", func(c client) *uuid.UUID { return c.SigningKey }),
	{Rule: Rule{
		Code: "signing_key_missing", Pointer: "/signing_key",
		When: "signing_key is null, and client_type is public or client_secret is empty",
		Detail: "Without a key, tokens can be signed only with client_secret, which is empty or not secret here. Set " +
			"signing_key.",
		Section: "OpenID Connect Core 1.0, section 10.1",
		Seen: "go-oidc 3.21.0, hashicorp/cap 0.16.0 and zitadel/oidc 3.52.0 refuse ID tokens signed with a secret " +
			"(HS256).",
		Bad: public, Good: public + `, "signing_key": ` + some,
	}, holds: func(c client) bool { return c.SigningKey == nil && (c.isPublic() || c.secret == "") }},
	{Rule: Rule{
		Code: "signing_key_hs256", Pointer: "/signing_key",
		When: "signing_key is null, client_type is confidential, and redirect URIs, property mappings or a client_secret " +
			"are set",
		Detail: "ID tokens are signed with client_secret (HS256), which many clients refuse: they require RS256. Set " +
			"signing_key to an RSA key.",
		Section: "OpenID Connect Core 1.0, section 15.1",
		Seen: "go-oidc 3.21.0, hashicorp/cap 0.16.0, zitadel/oidc 3.52.0 and express-openid-connect 3.4.0 refuse them; " +
			"openid-client 6.9.0 and @auth/core 0.41.3 do not.",
		Bad:  `"redirect_uris": "https://app.example.com/callback"`,
		Good: `"redirect_uris": "https://app.example.com/callback", "signing_key": ` + some,
	}, holds: func(c client) bool {
		isChosen := len(c.redirectURIs)+len(c.PropertyMappings) > 0 || c.generated&records.GeneratedSecret == 0
		return c.SigningKey == nil && c.hasSecret(shortSecret, math.MaxInt) && isChosen
	}},
	{Rule: Rule{
		Code: "redirect_uris_missing", Pointer: redirectURIs, When: "client_type is public, and redirect_uris is empty",
		Detail:  "A public client is identified only by its redirect URIs. Add every redirect URI that it uses.",
		Section: "RFC 6749, section 3.1.2.2",
		Seen:    "authentik registers the first URI that anyone sends (Redirect URIs, in its documentation).",
		Bad:     public, Good: public + `, "redirect_uris": "https://app.example.com/callback"`,
	}, holds: func(c client) bool { return c.isPublic() && len(c.redirectURIs) == 0 }},
	{Rule: Rule{
		Code: "redirect_uri_malformed", Pointer: redirectURIs,
		When: "a line is not an absolute URI (RFC 3986) that clients can use, or is an http or https URI without a host",
		Detail: "Not an absolute URI. Write one such as https://app.example.com/callback, with a host in A-labels (xn--), " +
			"a port up to 65535, and other characters outside ASCII percent-encoded.",
		Section: "RFC 6749, section 3.1.2",
		Seen: "URL in Node.js 20 refuses ports above 65535 and unclosed brackets, and rewrites characters outside " +
			"ASCII; openid-client 6.9.0 uses it.",
		Bad:  `"redirect_uris": "https:app.example.com/callback"`,
		Good: `"redirect_uris": "https://app.example.com/callback"`,
	}, lines: linesWith(redirectURI.isOtherwiseMalformed)},
	{Rule: Rule{
		Code: "redirect_uri_pattern", Pointer: redirectURIs,
		When: `a line contains a backslash, ".+", "|" or "(?", begins with "^", or ends in "$"`,
		Detail: `A redirect URI is not a regular expression, and a backslash and "n" are not a line break. Write each URI ` +
			"in full, on a line of its own.",
		Section: comparedExactly,
		Seen:    "authentik 2024.10.3 took \\? for the URI itself; no login worked (authentik issue 12136).",
		Bad:     `"redirect_uris": "https://app.example.com/a\\nhttps://app.example.com/b"`, Good: onTwoLines,
	}, lines: linesWith(redirectURI.isPattern)},
	{Rule: Rule{
		Code: "redirect_uri_placeholder", Pointer: redirectURIs,
		When:    `a line contains "<", ">", "{", "}" or a variable such as $HOST`,
		Detail:  "Placeholders are not replaced. Write the value, such as the port, instead.",
		Section: comparedExactly,
		Seen: "authentik's guide for Gitea says https://<gitea.company>/; a sample sent Enter_Your_URL " +
			"(aspnet-security-api-sample issue 45).",
		Bad:  `"redirect_uris": "http://127.0.0.1:<port>/callback"`,
		Good: `"redirect_uris": "http://127.0.0.1:8765/callback"`,
	}, lines: linesWith(redirectURI.hasPlaceholder)},
	{Rule: Rule{
		Code: "redirect_uri_joined", Pointer: redirectURIs,
		When:    `before its query, a line has a second URI, or ends in ",", ";" or "|"`,
		Detail:  "Looks like several URIs on one line. Put each URI on a line of its own, without a separator.",
		Section: comparedExactly,
		Seen:    "Arkime and Rocket.Chat take lists with commas; Keycloak then refused the URI (arkime issue 2949).",
		Bad:     `"redirect_uris": "https://app.example.com/a,https://app.example.com/b"`, Good: onTwoLines,
	}, lines: linesWith(redirectURI.isJoined)},
	{Rule: Rule{
		Code: "redirect_uri_http", Pointer: redirectURIs, When: "a line has the scheme http and a host other than loopback",
		Detail:  "HTTP sends the authorization code over the network unencrypted. Use https.",
		Section: "RFC 9700, section 2.6",
		Seen:    "Google refuses such URIs, except for localhost.",
		Bad:     `"redirect_uris": "http://app.example.com/callback"`,
		Good:    `"redirect_uris": "https://app.example.com/callback"`,
	}, lines: linesWith(redirectURI.isUnencrypted)},
	{Rule: Rule{
		Code: "redirect_uri_wildcard", Pointer: redirectURIs, When: `a line contains "*"`,
		Detail:  `Redirect URIs are compared character by character; "*" is not a wildcard. List each URI in full.`,
		Section: comparedExactly,
		Seen:    "Keycloak, which has them, let attackers redirect anywhere (CVE-2026-7504).",
		Bad:     `"redirect_uris": "https://*.example.com/callback"`,
		Good:    `"redirect_uris": "https://app.example.com/callback\nhttps://www.example.com/callback"`,
	}, lines: linesWith(redirectURI.hasWildcard)},
	{Rule: Rule{
		Code: "redirect_uri_rewritten", Pointer: redirectURIs,
		When: "a line with http or https has dot segments, an empty port, or upper case or percent-encoding before its path",
		Detail: "Clients that write URLs as browsers do send another text, and the request is refused. Write lower case, " +
			"and no empty port, percent-encoding in the host, or dot segments.",
		Section: "WHATWG URL Standard, section 4.5",
		Seen:    "openid-client 6.9.0 sends the rewritten URI to the token endpoint: invalid_grant.",
		Bad:     `"redirect_uris": "https://App.example.com/callback"`,
		Good:    `"redirect_uris": "https://app.example.com/callback"`,
	}, lines: linesWith(func(u redirectURI) bool {
		return u.isRewritten && !u.isPattern() && !u.hasPlaceholder()
	})},
	{Rule: Rule{
		Code: "redirect_uri_scheme_without_dot", Pointer: redirectURIs,
		When: "a line has a scheme other than http and https that contains no dot",
		Detail: "Any app can claim such a scheme. Use your domain name in reverse, such as com.example.app:/callback, or " +
			"https.",
		Section: "RFC 8252, section 8.4",
		Seen:    "Another app can claim the scheme and get the code (AppAuth-Android issue 1097).",
		Bad:     public + `, "redirect_uris": "myapp:/callback"`,
		Good:    public + `, "redirect_uris": "com.example.app:/callback"`,
	}, lines: linesWith(redirectURI.isNativeWithoutDot)},
	{Rule: Rule{
		Code: "sub_mode_reassignable", Pointer: "/sub_mode", When: "sub_mode is user_email, user_upn or user_username",
		Detail: "A subject must never be reassigned, but a user name or address can pass to another person, who then has " +
			"the previous owner's accounts. Use hashed_user_id, user_id or user_uuid.",
		Section: "OpenID Connect Core 1.0, sections 2 and 5.7",
		Seen:    "June 2023: a changed address opened the accounts of others at users of Microsoft Entra (nOAuth).",
		Bad:     `"sub_mode": "user_email"`, Good: `"sub_mode": "hashed_user_id"`,
	}, holds: func(c client) bool {
		return slices.Contains([]string{"user_email", "user_upn", "user_username"}, c.SubMode)
	}},
	{Rule: Rule{
		Code: "issuer_mode_global", Pointer: "/issuer_mode", When: "issuer_mode is global",
		Detail: "The metadata of this provider then names an issuer other than the URL that it is read from, so clients " +
			"refuse it. Use per_provider.",
		Section: "OpenID Connect Discovery 1.0, section 4.3",
		Seen: "Refused by openid-client 6.9.0, express-openid-connect 3.4.0, @auth/core 0.41.3, go-oidc 3.21.0, " +
			"hashicorp/cap 0.16.0 and zitadel/oidc 3.52.0.",
		Bad: `"issuer_mode": "global"`, Good: `"issuer_mode": "per_provider"`,
	}, holds: func(c client) bool { return c.IssuerMode == "global" }},
}
