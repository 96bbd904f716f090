package advice_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

// FuzzOAuth2 checks that nothing panics, and that advice consists of the rules' sentences and line numbers only, so
// that it cannot contain a value.
func FuzzOAuth2(f *testing.F) {
	f.Add("confidential", "shop", "", "minutes=1", "hours=1", "days=30", "https://app.example.com/callback", "user_id", true)
	f.Add("public", "caf\u00e9", "x", "weeks=9;days=", "=1;hours=NaN", "days=1e999",
		"http://localhost\r\nmyapp:/a,b*\nhttp://[::1%25a]:x/\n\n:\nhttp://%zz\nhttp://a/\nb.c:d\nhttp://a/\n", "user_email", false)
	f.Fuzz(func(t *testing.T, clientType, clientID, secret, code, access, refresh, uris, sub string, hasKey bool) {
		settings := store.OAuth2Settings{
			AuthenticationFlow: &uuid.Nil, ClientType: clientType, ClientID: clientID, ClientSecret: store.NewSecret(secret),
			AccessCodeValidity: code, AccessTokenValidity: access, RefreshTokenValidity: refresh, RedirectURIs: uris,
			SubMode: sub,
		}
		if hasKey {
			settings.SigningKey = &settings.AuthorizationFlow
		}
		checkSentences(t, advice.OAuth2(settings), advice.OAuth2Rules(), strings.Count(uris, "\n")+1)
	})
}

// FuzzWorkspaceDirectory checks the same for directories.
func FuzzWorkspaceDirectory(f *testing.F) {
	f.Add("admin@example.com", `{"key":"example"}`, "a b", "delete", "suspend", "example.com")
	f.Fuzz(func(t *testing.T, subject, credentials, scopes, userAction, groupAction, domain string) {
		settings := store.WorkspaceDirectorySettings{
			DelegatedSubject: subject, Credentials: store.NewSecret(credentials), Scopes: scopes, FilterGroup: &uuid.Nil,
			UserDeleteAction: userAction, GroupDeleteAction: groupAction, DefaultGroupEmailDomain: domain,
		}
		checkSentences(t, advice.WorkspaceDirectory(settings), advice.WorkspaceDirectoryRules(), 0)
	})
}

// checkSentences checks that each piece of advice is that of a rule, in the order of the rules and at most once, and
// parses the line numbers before its sentence.
func checkSentences(t *testing.T, given []advice.Advice, rules []advice.Rule, lineCount int) {
	t.Helper()
	for _, item := range given {
		for len(rules) > 0 && (rules[0].Code != item.Code || rules[0].Pointer != item.Pointer) {
			rules = rules[1:]
		}
		if len(rules) == 0 {
			t.Fatalf("%+v is of no rule, or out of order", item)
		}
		prefix, isSentence := strings.CutSuffix(item.Detail, rules[0].Detail)
		if !isSentence || item.Section != rules[0].Section {
			t.Errorf("%+v, want %+v", item, rules[0])
		}
		for _, word := range strings.FieldsFunc(prefix, func(r rune) bool { return strings.ContainsRune(" ,:", r) }) {
			switch word {
			case "Line", "Lines", "and", "more":
				continue
			}
			if number, err := strconv.Atoi(word); err != nil || number < 1 || number > lineCount {
				t.Errorf("%q is in %q", word, item.Detail)
			}
		}
		rules = rules[1:]
	}
}
