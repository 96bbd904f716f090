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
	// contract changes the contract that the server uses.
	contract func(document map[string]any)
	// request changes requests before the server gets them; success and problem change its responses.
	request          func(body map[string]any)
	success, problem func(response *recorded)
}

// recorded is a response before it is sent.
type recorded struct {
	status int
	header http.Header
	body   map[string]any
}

// requestFaults returns rules that the server does not check, or that only the server has, and changes to values on the
// way to the database.
func requestFaults() map[string]fault {
	const oauth2, directory = "OAuth2ProviderRequest/", "WorkspaceDirectoryProviderRequest/"
	// rule gives the rule at a path of the schemas another value, or removes it.
	rule := func(path string, value any) fault {
		return fault{contract: func(document map[string]any) {
			way := append([]string{"components", "schemas"}, strings.Split(path, "/")...)
			parent, rule := lookUp(document, way[:len(way)-1]), way[len(way)-1]
			delete(parent, rule)
			if value != nil {
				parent[rule] = value
			}
		}}
	}
	altered := func(name string, change func(value any) any) fault {
		return fault{request: func(body map[string]any) {
			if value, ok := body[name]; ok {
				body[name] = change(value)
			}
		}}
	}
	text := func(name string, change func(string) string) fault {
		return altered(name, func(value any) any {
			if text, ok := value.(string); ok {
				return change(text)
			}
			return value
		})
	}
	return map[string]fault{
		"not checked: client_id is too long":       rule(oauth2+"properties/client_id/maxLength", nil),
		"not checked: redirect_uris are anything":  rule(oauth2+"properties/redirect_uris/pattern", nil),
		"not checked: javascript is not a URI":     rule(oauth2+"properties/redirect_uris/x-refused-schemes", nil),
		"not checked: name is invisible":           rule(oauth2+"properties/name/x-visible", nil),
		"not checked: scopes are empty":            rule(directory+"properties/scopes/minLength", nil),
		"not checked: subject is not an address":   rule(directory+"properties/delegated_subject/pattern", nil),
		"not checked: mapping is not a UUID":       rule(directory+"properties/property_mappings/items/pattern", nil),
		"not checked: any sub_mode":                rule("SubModeEnum/enum", nil),
		"not checked: name is null":                rule(oauth2+"properties/name/nullable", true),
		"not checked: unknown fields":              rule(directory+"additionalProperties", nil),
		"not requested: authorization_flow":        rule(oauth2+"required", []any{"name"}),
		"not requested: anything":                  rule(directory+"required", nil),
		"rule too many: client_id is shorter":      rule(oauth2+"properties/client_id/maxLength", 254),
		"rule too many: only one sub_mode":         rule("SubModeEnum/enum", []any{"hashed_user_id", "user_uuid"}),
		"rule too many: filter_group is not null":  rule(directory+"properties/filter_group/nullable", nil),
		"rule too many: no fractions of durations": rule(oauth2+"properties/access_token_validity/pattern", "^[a-z]+=[0-9]+(;[a-z]+=[0-9]+)*$"),
		"name is trimmed":                          text("name", func(s string) string { return strings.TrimSpace(s) + "." }),
		"last line end is lost":                    text("redirect_uris", func(s string) string { return strings.TrimSuffix(s, "\n") }),
		"address is normalized":                    text("delegated_subject", strings.ToLower),
		"false becomes true":                       altered("include_claims_in_id_token", func(any) any { return true }),
		"list is reversed": altered("jwks_sources", func(value any) any {
			if list, ok := value.([]any); ok {
				slices.Reverse(list)
			}
			return value
		}),
		"numbers are rounded": altered("credentials", func(value any) any {
			var rounded any
			text, _ := json.Marshal(value)
			_ = json.Unmarshal(text, &rounded)
			return rounded
		}),
	}
}

// answerFaults returns changes to responses.
func answerFaults() map[string]fault {
	nullList := func(name string) fault {
		return fault{success: func(answer *recorded) {
			if list, ok := answer.body[name].([]any); ok && len(list) == 0 {
				answer.body[name] = nil
			}
		}}
	}
	entries := func(change func(list []any) []any) fault {
		return fault{problem: func(answer *recorded) {
			if list, ok := answer.body["errors"].([]any); ok {
				answer.body["errors"] = change(list)
			}
		}}
	}
	entry := func(name string, value any) fault {
		return entries(func(list []any) []any { list[0].(map[string]any)[name] = value; return list })
	}
	withoutID := func(answer *recorded) { answer.header.Del("X-Request-Id") }
	return map[string]fault{
		"null for property_mappings": nullList("property_mappings"),
		"null for jwks_sources":      nullList("jwks_sources"),
		"component is missing":       {success: func(answer *recorded) { delete(answer.body, "component") }},
		"nulls are missing": {success: func(answer *recorded) {
			maps.DeleteFunc(answer.body, func(_ string, value any) bool { return value == nil })
		}},
		"field too many":               {success: func(answer *recorded) { answer.body["created_by"] = "x" }},
		"answer is not what is stored": {success: func(answer *recorded) { answer.body["assigned_backchannel_application_name"] = "x" }},
		"status 200":                   {success: func(answer *recorded) { answer.status = http.StatusOK }},
		"success in text":              {success: func(answer *recorded) { answer.header.Set("Content-Type", "text/plain") }},
		"Cache-Control is missing":     {success: func(answer *recorded) { answer.header.Del("Cache-Control") }},
		"X-Request-Id is missing":      {success: withoutID, problem: withoutID},
		"status 422":                   {problem: func(answer *recorded) { answer.status, answer.body["status"] = 422, 422 }},
		"status 500":                   {problem: func(answer *recorded) { answer.status, answer.body["status"] = 500, 500 }},
		"request_id is missing":        {problem: func(answer *recorded) { delete(answer.body, "request_id") }},
		"errors are missing":           {problem: func(answer *recorded) { delete(answer.body, "errors") }},
		"problem in JSON":              {problem: func(answer *recorded) { answer.header.Set("Content-Type", "application/json") }},
		"entry at the wrong place":     entry("pointer", ""),
		"entry with an unknown code":   entry("code", "wrong"),
		"entry twice":                  entries(func(list []any) []any { return append(list, list[0]) }),
	}
}
