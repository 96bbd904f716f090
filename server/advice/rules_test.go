package advice_test

import (
	"encoding/json"
	"slices"
	"testing"

	"example.com/providerd/gen/model"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store"
)

const (
	anyUUID  = "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"
	nilUUID  = "00000000-0000-0000-0000-000000000000"
	lastUUID = "ffffffff-ffff-ffff-ffff-ffffffffffff"
)

// Requests that get no advice, and members that make them others.
const (
	goodClient = `{"name":"x","authorization_flow":"` + anyUUID + `","client_id":"shop","signing_key":"` + anyUUID + `",` +
		`"client_secret":"yM3pQ8vT1kZ6wB9nR4cX7dF2",` +
		`"redirect_uris":"https://shop.example.com/callback\r\nhttps://shop.example.com/callback?a=b\n"}`
	goodDirectory = `{"name":"x","delegated_subject":"admin@example.com","credentials":{"key":"x"},"user_delete_action":"suspend",` +
		`"default_group_email_domain":"example.com"}`
	publicClient = `"client_type":"public","client_secret":""`
	withoutKey   = `"signing_key":null`
)

// ruleCase has members of requests for one rule: those in trips get its advice and no other, those in passes get none.
type ruleCase struct {
	code, pointer string
	trips, passes []string
	// lines is the beginning of the detail if the rule is about lines.
	lines string
}

// of returns the case of a rule about a field, with values of that field.
func of(code, field string, trips, passes []string) ruleCase {
	return ruleCase{code: code, pointer: "/" + field, trips: each("", field, trips...), passes: each("", field, passes...)}
}

// each returns a member with each value, after further members.
func each(further, field string, values ...string) (members []string) {
	for _, value := range values {
		text, _ := json.Marshal(value)
		if further != "" {
			members = append(members, further+`,"`+field+`":`+string(text))
		} else {
			members = append(members, `"`+field+`":`+string(text))
		}
	}
	return members
}

// client returns the settings of the good client with other members.
func client(t *testing.T, members string) store.OAuth2Settings {
	t.Helper()
	var request model.OAuth2ProviderRequest
	read(t, &request, goodClient, members)
	settings, _ := contract.FromAPIOAuth2(request)
	return settings
}

func directory(t *testing.T, members string) store.WorkspaceDirectorySettings {
	t.Helper()
	var request model.WorkspaceDirectoryProviderRequest
	read(t, &request, goodDirectory, members)
	return contract.FromAPIWorkspaceDirectory(request)
}

func read(t *testing.T, request any, good, members string) {
	t.Helper()
	for _, text := range []string{good, "{" + members + "}"} {
		if err := json.Unmarshal([]byte(text), request); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

func TestOAuth2Rules(t *testing.T) {
	t.Parallel()
	checkRules(t, slices.Concat(fieldCases(), secretCases(), redirectURICases()), client, advice.OAuth2, advice.OAuth2Rules())
}

func TestWorkspaceDirectoryRules(t *testing.T) {
	t.Parallel()
	checkRules(t, directoryCases(t), directory, advice.WorkspaceDirectory, advice.WorkspaceDirectoryRules())
}

// checkRules reads the members of every case. Every rule must have cases of both sorts.
func checkRules[Settings any](
	t *testing.T, cases []ruleCase, read func(*testing.T, string) Settings, advise func(Settings) []advice.Advice,
	rules []advice.Rule,
) {
	t.Helper()
	for _, rule := range rules {
		at := slices.IndexFunc(cases, func(c ruleCase) bool { return c.code == rule.Code && c.pointer == rule.Pointer })
		if at < 0 || len(cases[at].trips) == 0 || len(cases[at].passes) == 0 {
			t.Errorf("no case trips %s of %s, or none passes it", rule.Code, rule.Pointer)
			continue
		}
		want := advice.Advice{
			Code: rule.Code, Pointer: rule.Pointer, Detail: cases[at].lines + rule.Detail, Section: rule.Section,
		}
		for _, members := range cases[at].trips {
			if got := advise(read(t, members)); len(got) != 1 || got[0] != want {
				t.Errorf("%.200s: %+v, want %+v", members, got, want)
			}
		}
		for _, members := range cases[at].passes {
			if got := advise(read(t, members)); got == nil || len(got) != 0 {
				t.Errorf("%s of %s, %.200s: %+v, want none", rule.Code, rule.Pointer, members, got)
			}
		}
	}
	if len(cases) != len(rules) {
		t.Errorf("there are %d cases for %d rules", len(cases), len(rules))
	}
}
