package advice_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/gen/api"
	"example.com/providerd/server/advice"
	"example.com/providerd/store"
)

const anyUUID = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"

// ruleCase has settings for one rule: those in trips get its advice and no other, those in passes get none.
type ruleCase[Settings any] struct {
	code, pointer string
	trips, passes []func(*Settings)
	// lines is the beginning of the detail if the rule is about lines.
	lines string
}

// goodClient returns settings that get no advice.
func goodClient() store.OAuth2Settings {
	key := uuid.MustParse(anyUUID)
	return store.OAuth2Settings{
		AuthorizationFlow: key, ClientType: "confidential", ClientID: "shop", SigningKey: &key,
		ClientSecret:       store.NewSecret("yM3pQ8vT1kZ6wB9nR4cX7dF2"),
		AccessCodeValidity: "minutes=1", AccessTokenValidity: "hours=1", RefreshTokenValidity: "days=30",
		RedirectURIs: "https://shop.example.com/callback\r\nhttps://shop.example.com/callback?a=b\n",
		SubMode:      "hashed_user_id", IssuerMode: "per_provider",
	}
}

// publicClient returns settings of a public client that get no advice.
func publicClient(s *store.OAuth2Settings) {
	s.ClientType, s.ClientSecret = "public", store.NewSecret("")
}

func secret(text string) func(*store.OAuth2Settings) {
	return func(s *store.OAuth2Settings) { s.ClientSecret = store.NewSecret(text) }
}

func redirectURIs(lines ...string) func(*store.OAuth2Settings) {
	return func(s *store.OAuth2Settings) { s.RedirectURIs = strings.Join(lines, "\n") }
}

// and applies each of several changes.
func and[Settings any](changes ...func(*Settings)) func(*Settings) {
	return func(s *Settings) {
		for _, change := range changes {
			change(s)
		}
	}
}

func withoutKey(s *store.OAuth2Settings) { s.SigningKey = nil }

func TestOAuth2Rules(t *testing.T) {
	t.Parallel()
	cases := slices.Concat(fieldCases(), secretCases(), redirectURICases())
	checkRules(t, cases, goodClient, advice.OAuth2, advice.OAuth2Rules())
}

func TestWorkspaceDirectoryRules(t *testing.T) {
	t.Parallel()
	good := func() store.WorkspaceDirectorySettings {
		return store.WorkspaceDirectorySettings{
			DelegatedSubject: "admin@example.com", UserDeleteAction: "suspend", GroupDeleteAction: "do_nothing",
			DefaultGroupEmailDomain: "example.com",
		}
	}
	type settings = store.WorkspaceDirectorySettings
	type changes = []func(*settings)
	const destructive = "delete_action_destructive"
	user := func(action string) func(*settings) { return func(s *settings) { s.UserDeleteAction = action } }
	group := func(action string) func(*settings) { return func(s *settings) { s.GroupDeleteAction = action } }
	filter := func(id uuid.UUID) func(*settings) { return func(s *settings) { s.FilterGroup = &id } }
	checkRules(t, append(credentialsCases(t), []ruleCase[settings]{
		{
			code: "nil_uuid", pointer: "/filter_group",
			trips: changes{filter(uuid.Nil)}, passes: changes{filter(uuid.MustParse(anyUUID)), filter(uuid.Max)},
		},
		{
			code: destructive, pointer: "/user_delete_action",
			trips: changes{user("delete")}, passes: changes{user("suspend"), user("do_nothing")},
		},
		{
			code: destructive, pointer: "/group_delete_action",
			trips: changes{group("delete")}, passes: changes{group("suspend"), group("do_nothing")},
		},
	}...), good, advice.WorkspaceDirectory, advice.WorkspaceDirectoryRules())
}

// checkRules applies every change to good settings. Every rule must have cases of both sorts.
func checkRules[Settings any](
	t *testing.T, cases []ruleCase[Settings], good func() Settings, advise func(Settings) []advice.Advice,
	rules []advice.Rule,
) {
	t.Helper()
	for _, rule := range rules {
		at := slices.IndexFunc(cases, func(c ruleCase[Settings]) bool {
			return c.code == rule.Code && c.pointer == rule.Pointer
		})
		if at < 0 || len(cases[at].trips) == 0 || len(cases[at].passes) == 0 {
			t.Errorf("no case trips %s of %s, or none passes it", rule.Code, rule.Pointer)
			continue
		}
		for i, change := range cases[at].trips {
			settings := good()
			change(&settings)
			want := advice.Advice{
				Code: rule.Code, Pointer: rule.Pointer, Detail: cases[at].lines + rule.Detail, Section: rule.Section,
			}
			if got := advise(settings); len(got) != 1 || got[0] != want {
				t.Errorf("%s of %s, case %d that trips it: %+v, want %+v", rule.Code, rule.Pointer, i, got, want)
			}
		}
		for i, change := range cases[at].passes {
			settings := good()
			change(&settings)
			if got := advise(settings); got == nil || len(got) != 0 {
				t.Errorf("%s of %s, case %d that passes it: %+v", rule.Code, rule.Pointer, i, got)
			}
		}
	}
	if len(cases) != len(rules) {
		t.Errorf("there are %d cases for %d rules", len(cases), len(rules))
	}
}

// Every rule has all of its parts, and its field is one of the request.
func TestRulesAreWhole(t *testing.T) {
	t.Parallel()
	checkParts(t, advice.OAuth2Rules(), reflect.TypeFor[api.OAuth2ProviderRequest]())
	checkParts(t, advice.WorkspaceDirectoryRules(), reflect.TypeFor[api.WorkspaceDirectoryProviderRequest]())
}

func checkParts(t *testing.T, rules []advice.Rule, request reflect.Type) {
	t.Helper()
	var pointers []string
	for field := range request.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		pointers = append(pointers, "/"+name)
	}
	seen := map[string]bool{}
	for _, rule := range rules {
		name := fmt.Sprint(rule.Code, " of ", rule.Pointer)
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
		if strings.Trim(rule.Code, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || rule.Code == "" {
			t.Errorf("%q is not in snake_case", rule.Code)
		}
		if !slices.Contains(pointers, rule.Pointer) {
			t.Errorf("%s: no such field", name)
		}
		if rule.When == "" || rule.Detail == "" || rule.Section == "" {
			t.Errorf("%s lacks a part: %+v", name, rule)
		}
	}
}
