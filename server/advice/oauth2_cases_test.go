package advice_test

import (
	"strings"

	"github.com/google/uuid"

	"example.com/providerd/store"
)

type (
	clientCase    = ruleCase[store.OAuth2Settings]
	clientChanges = []func(*store.OAuth2Settings)
)

func fieldCases() []clientCase {
	id := func(text string) *uuid.UUID {
		parsed := uuid.MustParse(text)
		return &parsed
	}
	code := func(text string) func(*store.OAuth2Settings) {
		return func(s *store.OAuth2Settings) { s.AccessCodeValidity = text }
	}
	access := func(text string) func(*store.OAuth2Settings) {
		return func(s *store.OAuth2Settings) { s.AccessTokenValidity = text }
	}
	refresh := func(text string) func(*store.OAuth2Settings) {
		return func(s *store.OAuth2Settings) { s.RefreshTokenValidity = text }
	}
	sub := func(mode string) func(*store.OAuth2Settings) {
		return func(s *store.OAuth2Settings) { s.SubMode = mode }
	}
	clientID := func(text string) func(*store.OAuth2Settings) {
		return func(s *store.OAuth2Settings) { s.ClientID = text }
	}
	return []clientCase{
		{
			code: "nil_uuid", pointer: "/authentication_flow",
			trips: clientChanges{func(s *store.OAuth2Settings) { s.AuthenticationFlow = &uuid.Nil }},
			passes: clientChanges{
				func(s *store.OAuth2Settings) { s.AuthenticationFlow = nil },
				func(s *store.OAuth2Settings) { s.AuthenticationFlow = id(anyUUID) },
			},
		},
		{
			code: "nil_uuid", pointer: "/authorization_flow",
			trips:  clientChanges{func(s *store.OAuth2Settings) { s.AuthorizationFlow = uuid.Nil }},
			passes: clientChanges{func(s *store.OAuth2Settings) { s.AuthorizationFlow = uuid.Max }},
		},
		{
			code: "nil_uuid", pointer: "/signing_key",
			trips:  clientChanges{func(s *store.OAuth2Settings) { s.SigningKey = &uuid.Nil }},
			passes: clientChanges{and(withoutKey, secret(strings.Repeat("yM3pQ8vT", 4)))},
		},
		{
			code: "signing_key_missing", pointer: "/signing_key",
			trips:  clientChanges{and(publicClient, withoutKey)},
			passes: clientChanges{publicClient, and(withoutKey, secret(strings.Repeat("yM3pQ8vT", 4)))},
		},
		{
			code: "native_app_confidential", pointer: "/client_type",
			trips: clientChanges{redirectURIs("com.example.app:/callback"), redirectURIs("https://a/b", "com.example.app://x/y")},
			passes: clientChanges{
				and(publicClient, redirectURIs("com.example.app:/callback")), redirectURIs("HTTPS://app.example.com/"),
			},
		},
		{
			code: "client_id_unprintable", pointer: "/client_id",
			trips:  clientChanges{clientID("caf\u00e9"), clientID("a\tb"), clientID("a\x7f"), clientID("a\nb")},
			passes: clientChanges{clientID("a b~!")},
		},
		{
			code: "access_code_long_lived", pointer: "/access_code_validity",
			trips: clientChanges{
				code("minutes=10.1"), code("minutes=9;seconds=60.001"), code("weeks=999999999.999999999"),
				code("milliseconds=600001"), code("microseconds=999999999"),
			},
			passes: clientChanges{
				code("minutes=10"), code("minutes=9.9;minutes=0.1"), code("milliseconds=600000"), code("microseconds=600000000"),
			},
		},
		{
			code: "access_token_long_lived", pointer: "/access_token_validity",
			trips:  clientChanges{access("days=1;seconds=1"), access("hours=24.1"), access("weeks=1")},
			passes: clientChanges{access("days=1"), access("hours=24"), access("minutes=1440")},
		},
		{
			code: "refresh_token_long_lived", pointer: "/refresh_token_validity",
			trips:  clientChanges{refresh("days=366"), refresh("weeks=53")},
			passes: clientChanges{refresh("days=365"), refresh("weeks=52")},
		},
		{
			code: "sub_mode_reassignable", pointer: "/sub_mode",
			trips:  clientChanges{sub("user_email"), sub("user_upn"), sub("user_username")},
			passes: clientChanges{sub("hashed_user_id"), sub("user_id"), sub("user_uuid")},
		},
	}
}

func secretCases() []clientCase {
	const pointer = "/client_secret"
	hexadecimal := secret("0123456701234567012345670123456701234567")
	return []clientCase{
		{
			code: "client_secret_needless", pointer: pointer,
			trips:  clientChanges{and(publicClient, secret("x")), and(publicClient, secret(strings.Repeat("x", 255)))},
			passes: clientChanges{publicClient},
		},
		{
			code: "client_secret_empty", pointer: pointer,
			trips: clientChanges{secret("")}, passes: clientChanges{publicClient},
		},
		{
			code: "client_secret_short", pointer: pointer,
			trips:  clientChanges{secret("a"), secret("yM3pQ8vT1kZ6wB9nR4cX7"), and(withoutKey, secret("changeme"))},
			passes: clientChanges{secret("yM3pQ8vT1kZ6wB9nR4cX7d")},
		},
		{
			code: "client_secret_short_for_hs256", pointer: pointer,
			trips: clientChanges{
				and(withoutKey, secret("yM3pQ8vT1kZ6wB9nR4cX7d")), and(withoutKey, secret("yM3pQ8vT1kZ6wB9nR4cX7dF2hJ5sL0g")),
			},
			passes: clientChanges{and(withoutKey, secret("yM3pQ8vT1kZ6wB9nR4cX7dF2hJ5sL0gA"))},
		},
		{
			code: "client_secret_repetitive", pointer: pointer,
			trips:  clientChanges{secret(strings.Repeat("x", 255)), secret(strings.Repeat("abcdefg", 5))},
			passes: clientChanges{hexadecimal},
		},
		{
			code: "client_secret_unprintable", pointer: pointer,
			trips:  clientChanges{secret("yM3pQ8vT1kZ6wB9nR4cX\u00e9!"), secret("yM3pQ8vT1kZ6wB9nR4cX7d\n")},
			passes: clientChanges{secret("yM3pQ8vT 1kZ6wB9nR4cX7d~")},
		},
	}
}
