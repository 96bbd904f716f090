package advice_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	text "example.com/providerd/gen/contract"
	"example.com/providerd/gen/model"
	"example.com/providerd/server/advice"
	"example.com/providerd/server/contract"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest/processtest"
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
	return given(code, field, each("", field, trips...), each("", field, passes...))
}

func given(code, field string, trips, passes []string) ruleCase {
	return ruleCase{code: code, pointer: "/" + field, trips: trips, passes: passes}
}

// each returns a member with each value, after further members.
func each(further, field string, values ...string) (members []string) {
	if further != "" {
		further += ","
	}
	for _, value := range values {
		text, _ := json.Marshal(value)
		members = append(members, further+`"`+field+`":`+string(text))
	}
	return members
}

// client returns the good client with other members.
func client(t *testing.T, members string) (provider records.OAuth2Provider) {
	t.Helper()
	request := read[model.OAuth2ProviderRequest](t, goodClient, members)
	provider.OAuth2Settings, provider.Generated = contract.FromAPIOAuth2(request)
	return provider
}

func advise(provider records.OAuth2Provider) []advice.Advice {
	return advice.OAuth2(provider.OAuth2Settings, provider.Generated)
}

func directory(t *testing.T, members string) records.WorkspaceDirectorySettings {
	t.Helper()
	return contract.FromAPIWorkspaceDirectory(read[model.WorkspaceDirectoryProviderRequest](t, goodDirectory, members))
}

func read[Request any](t *testing.T, good, members string) (request Request) {
	t.Helper()
	processtest.Must(t, json.Unmarshal([]byte(good), &request), json.Unmarshal([]byte("{"+members+"}"), &request))
	return request
}

func TestOAuth2Rules(t *testing.T) {
	t.Parallel()
	checkRules(t, slices.Concat(fieldCases(), secretCases(), redirectURICases()), client, advise, advice.OAuth2Rules())
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
		processtest.Expect(t, rule.Section != "" && rule.Seen != "",
			"%s of %s has no source, or was not seen", rule.Code, rule.Pointer)
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
	processtest.Expect(t, len(cases) == len(rules), "there are %d cases for %d rules", len(cases), len(rules))
}

// A public client needs redirect URIs and a signing key: tokens cannot be signed with an empty secret.
func TestMissingFieldsGetAdvice(t *testing.T) {
	t.Parallel()
	for members, want := range map[string]string{
		publicClient + `,"signing_key":null,"redirect_uris":""`: "signing_key_missing redirect_uris_missing",
		`"signing_key":null,"client_secret":""`:                 "client_secret_empty signing_key_missing",
		withoutKey + `,"client_secret":"short"`:                 "client_secret_short",
	} {
		if got := strings.Join(codes(advise(client(t, members))), " "); got != want {
			t.Errorf("%s: %s, want %s", members, got, want)
		}
	}
}

// Random secrets and passphrases are taken for neither references nor digests.
func TestRandomSecretsAreSecrets(t *testing.T) {
	t.Parallel()
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	random := rand.New(rand.NewPCG(1, 2))
	secrets := 0
	for alphabet, length := range map[string]int{
		"0123456789abcdef": 64, letters + "+/": 44, letters + "_-": 43, letters: 40, letters + "!#$%&()*+,-./:;<=>?@[]^_{|}~": 32,
		"correct|horse|battery|staple|env|vault|secret|shadow|file|argon": 8,
	} {
		symbols, separator, count := strings.Split(alphabet, ""), "", 200
		if strings.Contains(alphabet, "horse") {
			symbols, separator, count = strings.Split(alphabet, "|"), "-", 50
		}
		for range count {
			text := make([]string, length)
			for i := range text {
				text[i] = symbols[random.IntN(len(symbols))]
			}
			secrets++
			found := codes(advise(client(t, each("", "client_secret", strings.Join(text, separator))[0])))
			if slices.Contains(found, "reference_unresolved") || slices.Contains(found, "client_secret_digest") {
				t.Errorf("%s: %v", strings.Join(text, separator), found)
			}
		}
	}
	processtest.Expect(t, secrets == 5*200+50, "there are %d secrets", secrets)
}

func codes(given []advice.Advice) []string {
	var codes []string
	for _, item := range given {
		codes = append(codes, item.Code)
	}
	return codes
}

// Each rule gives one piece of advice, with at most ten line numbers, in the order of the fields.
func TestManyLinesGetOnePieceOfAdvice(t *testing.T) {
	t.Parallel()
	settings := client(t, "")
	settings.SubMode, settings.AccessCodeValidity = "user_upn", "hours=1"
	for count, want := range map[int]string{
		1:    "Line 1: ",
		2:    "Lines 1 and 2: ",
		11:   "Lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 1 more: ",
		1000: "Lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 990 more: ",
		1001: "Lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 990 more: ",
	} {
		var text strings.Builder
		for line := range count {
			fmt.Fprintf(&text, "http://%d.example.com/*\n", line)
		}
		// What follows 64 KiB is not checked.
		settings.RedirectURIs = text.String() + "https://example.com/" + strings.Repeat("a", 64<<10) + "\nhttp://example.com/*"
		got := advise(settings)
		wantCodes := []string{
			"access_code_long_lived", "redirect_uri_http", "redirect_uri_wildcard", "sub_mode_reassignable",
		}
		processtest.Require(t, slices.Equal(codes(got), wantCodes), "%d lines: %+v", count, got)
		for _, item := range got[1:3] {
			processtest.Expect(t, strings.HasPrefix(item.Detail, want), "%d lines: %s", count, item.Detail)
		}
	}
}

// Advice for the largest bodies, here the most expensive that we know of, is short, and takes little memory.
func TestAdviceTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("regexp takes more memory under the race detector, which empties its pools")
	}
	const megabyte, mostBytes, longestDetail = 1 << 20, 8 << 20, 320
	var differentLines strings.Builder
	for line := range 1000 {
		fmt.Fprintf(&differentLines, "http://%d.%s/*\n", line, strings.Repeat("%41", 340))
	}
	members := slices.Concat(
		each("", "redirect_uris",
			strings.Repeat("a:b\n", megabyte/4), "http://"+strings.Repeat("a", megabyte-7),
			"http://a/"+strings.Repeat("%61", megabyte/3), "http://"+strings.Repeat("%C3", megabyte/3),
			"http://a/?"+strings.Repeat("a&", megabyte/2), "a:"+strings.Repeat("-", megabyte-3)+"*",
			strings.Repeat("http://"+strings.Repeat("a.", 508)+"\n", 1000), differentLines.String()),
		each("", "refresh_token_validity",
			strings.TrimSuffix(strings.Repeat("days=0;", megabyte/7), ";"),
			strings.TrimSuffix(strings.Repeat("microseconds=999999999.999999999;", megabyte/33), ";")))
	for _, member := range members {
		settings := client(t, member)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		given := advise(settings)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > mostBytes {
			t.Errorf("%.50s: takes %d bytes", member, taken)
		}
		processtest.Expect(t, len(given) <= len(advice.OAuth2Rules()), "%.50s: %d pieces of advice", member, len(given))
		for _, item := range given {
			processtest.Expect(t, len(item.Detail) <= longestDetail,
				"%.50s: %d bytes: %s", member, len(item.Detail), item.Detail)
		}
	}
}

// The examples of the contract get no advice.
func TestExamplesGetNoAdvice(t *testing.T) {
	t.Parallel()
	document, err := openapi3.NewLoader().LoadFromData(text.YAML())
	processtest.Must(t, err)
	read := map[string]func(members string) []advice.Advice{
		"/providers/oauth2/":              func(members string) []advice.Advice { return advise(client(t, members)) },
		"/providers/workspace_directory/": func(members string) []advice.Advice { return advice.WorkspaceDirectory(directory(t, members)) },
	}
	count := 0
	for path, item := range document.Paths.Map() {
		for title, example := range item.Post.RequestBody.Value.Content["application/json"].Examples {
			body, err := json.Marshal(example.Value.Value)
			processtest.Must(t, err)
			if got := read[path](string(body[1 : len(body)-1])); len(got) != 0 {
				t.Errorf("%s %s: %+v", path, title, got)
			}
			count++
		}
	}
	processtest.Expect(t, count == 4, "the contract has %d examples of requests", count)
}
