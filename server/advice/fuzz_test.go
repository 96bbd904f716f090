package advice_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

// FuzzOAuth2 proves that nothing panics, and that all that is said are the rules' own sentences and numbers of lines: no
// value, nor a part of one, can be in it.
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

// FuzzWorkspaceDirectory proves the same of directories.
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

// checkSentences finds for each piece of advice the rule that it is of, each rule in its turn and once, and reads the
// numbers before its sentence.
func checkSentences(t *testing.T, given []advice.Advice, rules []advice.Rule, lineCount int) {
	t.Helper()
	for _, one := range given {
		for len(rules) > 0 && (rules[0].Code != one.Code || rules[0].Pointer != one.Pointer) {
			rules = rules[1:]
		}
		if len(rules) == 0 {
			t.Fatalf("%+v is of no rule, or out of order", one)
		}
		prefix, isSentence := strings.CutSuffix(one.Detail, rules[0].Detail)
		if !isSentence || one.Section != rules[0].Section {
			t.Errorf("%+v, want %+v", one, rules[0])
		}
		for _, word := range strings.FieldsFunc(prefix, func(r rune) bool { return strings.ContainsRune(" ,:", r) }) {
			switch word {
			case "line", "lines", "and", "more":
				continue
			}
			if number, err := strconv.Atoi(word); err != nil || number < 1 || number > lineCount {
				t.Errorf("%q is in %q", word, one.Detail)
			}
		}
		rules = rules[1:]
	}
}
