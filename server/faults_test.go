//go:build slow

package server_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// fault makes a server deviate from the contract in one way.
type fault struct {
	kind, title string
	// contract changes the contract that the server uses.
	contract func(document map[string]any)
	// request changes requests before the server gets them; answer changes its responses.
	request func(body map[string]any)
	answer  func(response *recorded)
}

// recorded is a response before it is sent.
type recorded struct {
	status int
	header http.Header
	body   map[string]any
}

func faults() []fault {
	return slices.Concat(ruleFaults(), recordFaults(), answerFaults(), problemFaults())
}

// ruleFaults returns rules that the server does not check, or that only the server has.
func ruleFaults() []fault {
	takeOut := func(rule string, at ...string) func(map[string]any) {
		return func(document map[string]any) { delete(lookUp(document, schemaAt(at)), rule) }
	}
	put := func(rule string, value any, at ...string) func(map[string]any) {
		return func(document map[string]any) { lookUp(document, schemaAt(at))[rule] = value }
	}
	const oauth2, directory = "OAuth2ProviderRequest", "WorkspaceDirectoryProviderRequest"
	const unchecked, notAsked, tooMany = "rule not checked", "required field not asked for", "rule too many"
	return []fault{
		{kind: unchecked, title: "client_id is too long", contract: takeOut("maxLength", oauth2, "client_id")},
		{kind: unchecked, title: "redirect_uris are anything", contract: takeOut("pattern", oauth2, "redirect_uris")},
		{kind: unchecked, title: "javascript is no URI", contract: takeOut("not", oauth2, "redirect_uris")},
		{kind: unchecked, title: "scopes are empty", contract: takeOut("minLength", directory, "scopes")},
		{kind: unchecked, title: "subject is not an address", contract: takeOut("pattern", directory, "delegated_subject")},
		{kind: unchecked, title: "mapping is no UUID", contract: takeOut("pattern", directory, "property_mappings", "items")},
		{kind: unchecked, title: "any sub_mode", contract: takeOut("enum", "SubModeEnum")},
		{kind: unchecked, title: "name is null", contract: put("nullable", true, oauth2, "name")},
		{kind: unchecked, title: "unknown fields", contract: takeOut("additionalProperties", directory)},
		{kind: notAsked, title: "authorization_flow", contract: put("required", []any{"name"}, oauth2)},
		{kind: notAsked, title: "nothing is required", contract: takeOut("required", directory)},
		{kind: tooMany, title: "client_id is shorter", contract: put("maxLength", 254, oauth2, "client_id")},
		{kind: tooMany, title: "only one sub_mode", contract: put("enum", []any{"hashed_user_id", "user_uuid"}, "SubModeEnum")},
		{kind: tooMany, title: "filter_group is not null", contract: takeOut("nullable", directory, "filter_group")},
		{kind: tooMany, title: "no fractions", contract: put("pattern", "^[a-z]+=[0-9]+(;[a-z]+=[0-9]+)*$", oauth2, "access_token_validity")},
	}
}

// schemaAt leads to a schema, a property of it, and its items.
func schemaAt(at []string) []string {
	way := []string{"components", "schemas", at[0]}
	if len(at) > 1 {
		way = append(way, "properties", at[1])
	}
	return append(way, at[min(len(at), 2):]...)
}

// recordFaults returns changes to values on the way to or from the database.
func recordFaults() []fault {
	alter := func(name string, change func(value any) any) func(map[string]any) {
		return func(body map[string]any) {
			if value, ok := body[name]; ok {
				body[name] = change(value)
			}
		}
	}
	text := func(change func(string) string) func(any) any {
		return func(value any) any {
			if text, ok := value.(string); ok {
				return change(text)
			}
			return value
		}
	}
	const altered = "value altered"
	return []fault{
		{kind: altered, title: "name is trimmed", request: alter("name", text(func(s string) string {
			return strings.TrimSpace(s) + "."
		}))},
		{kind: altered, title: "last line end is lost", request: alter("redirect_uris", text(func(s string) string {
			return strings.TrimSuffix(s, "\n")
		}))},
		{kind: altered, title: "address is normalized", request: alter("delegated_subject", text(strings.ToLower))},
		{kind: altered, title: "false becomes true", request: alter("include_claims_in_id_token", func(any) any { return true })},
		{kind: altered, title: "list is sorted", request: alter("jwks_sources", func(value any) any {
			if list, ok := value.([]any); ok {
				slices.Reverse(list)
			}
			return value
		})},
		{kind: altered, title: "numbers are rounded", request: alter("credentials", func(value any) any {
			var rounded any
			text, _ := json.Marshal(value)
			_ = json.Unmarshal(text, &rounded)
			return rounded
		})},
		{kind: altered, title: "answer is not what is stored", answer: onRecord(func(record map[string]any) {
			record["assigned_backchannel_application_name"] = "x"
		})},
	}
}

func onRecord(change func(record map[string]any)) func(*recorded) {
	return func(answer *recorded) {
		if answer.status == http.StatusCreated {
			change(answer.body)
		}
	}
}

func onProblem(change func(answer *recorded)) func(*recorded) {
	return func(answer *recorded) {
		if answer.status >= http.StatusBadRequest {
			change(answer)
		}
	}
}

// answerFaults returns successes that deviate from the contract.
func answerFaults() []fault {
	success := func(change func(*recorded)) func(*recorded) {
		return func(answer *recorded) {
			if answer.status == http.StatusCreated {
				change(answer)
			}
		}
	}
	drop := func(name string) func(*recorded) {
		return onRecord(func(record map[string]any) { delete(record, name) })
	}
	null := func(name string) func(*recorded) {
		return onRecord(func(record map[string]any) {
			if list, ok := record[name].([]any); ok && len(list) == 0 {
				record[name] = nil
			}
		})
	}
	const nullList, missing, extra = "null for a list", "missing field", "field too many"
	const status, contentType, header = "wrong status", "wrong content type", "missing header"
	return []fault{
		{kind: nullList, title: "property_mappings", answer: null("property_mappings")},
		{kind: nullList, title: "jwks_sources", answer: null("jwks_sources")},
		{kind: missing, title: "component", answer: drop("component")},
		{kind: missing, title: "a null", answer: onRecord(func(record map[string]any) {
			maps.DeleteFunc(record, func(_ string, value any) bool { return value == nil })
		})},
		{kind: extra, title: "created_by", answer: onRecord(func(record map[string]any) { record["created_by"] = "x" })},
		{kind: status, title: "200", answer: success(func(answer *recorded) { answer.status = http.StatusOK })},
		{kind: contentType, title: "text for a record", answer: success(func(answer *recorded) {
			answer.header.Set("Content-Type", "text/plain")
		})},
		{kind: header, title: "Cache-Control", answer: success(func(answer *recorded) { answer.header.Del("Cache-Control") })},
		{kind: header, title: "X-Request-Id", answer: func(answer *recorded) { answer.header.Del("X-Request-Id") }},
	}
}

// problemFaults returns refusals that deviate from the contract.
func problemFaults() []fault {
	entries := func(change func(entries []any) []any) func(*recorded) {
		return onProblem(func(answer *recorded) {
			if list, ok := answer.body["errors"].([]any); ok {
				answer.body["errors"] = change(list)
			}
		})
	}
	const status, contentType = "wrong status", "wrong content type"
	const missing, entry = "missing field", "wrong entry"
	return []fault{
		{kind: status, title: "422", answer: onProblem(func(answer *recorded) {
			answer.status, answer.body["status"] = http.StatusUnprocessableEntity, http.StatusUnprocessableEntity
		})},
		{kind: status, title: "500", answer: onProblem(func(answer *recorded) {
			answer.status, answer.body["status"] = http.StatusInternalServerError, http.StatusInternalServerError
		})},
		{kind: contentType, title: "json for a problem", answer: onProblem(func(answer *recorded) {
			answer.header.Set("Content-Type", "application/json")
		})},
		{kind: missing, title: "request_id", answer: onProblem(func(answer *recorded) { delete(answer.body, "request_id") })},
		{kind: missing, title: "errors", answer: onProblem(func(answer *recorded) { delete(answer.body, "errors") })},
		{kind: entry, title: "twice", answer: entries(func(list []any) []any { return append(list, list[0]) })},
		{kind: entry, title: "at the wrong place", answer: entries(func(list []any) []any {
			list[0].(map[string]any)["pointer"] = ""
			return list
		})},
		{kind: entry, title: "with an unknown code", answer: entries(func(list []any) []any {
			list[0].(map[string]any)["code"] = "wrong"
			return list
		})},
	}
}
