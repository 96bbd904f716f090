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

// ofRule is a fault in the rule at a path of the schemas, which gets another value, or is removed.
func ofRule(kind, title, path string, value any) fault {
	return fault{kind: kind, title: title, contract: func(document map[string]any) {
		way := append([]string{"components", "schemas"}, strings.Split(path, "/")...)
		parent, rule := lookUp(document, way[:len(way)-1]), way[len(way)-1]
		delete(parent, rule)
		if value != nil {
			parent[rule] = value
		}
	}}
}

// ruleFaults returns rules that the server does not check, or that only the server has.
func ruleFaults() []fault {
	const oauth2, directory = "OAuth2ProviderRequest/", "WorkspaceDirectoryProviderRequest/"
	const unchecked, notRequested, tooMany = "rule not checked", "required field not requested", "rule too many"
	return []fault{
		ofRule(unchecked, "client_id is too long", oauth2+"properties/client_id/maxLength", nil),
		ofRule(unchecked, "redirect_uris are anything", oauth2+"properties/redirect_uris/pattern", nil),
		ofRule(unchecked, "javascript is not a URI", oauth2+"properties/redirect_uris/not", nil),
		ofRule(unchecked, "scopes are empty", directory+"properties/scopes/minLength", nil),
		ofRule(unchecked, "subject is not an address", directory+"properties/delegated_subject/pattern", nil),
		ofRule(unchecked, "mapping is not a UUID", directory+"properties/property_mappings/items/pattern", nil),
		ofRule(unchecked, "any sub_mode", "SubModeEnum/enum", nil),
		ofRule(unchecked, "name is null", oauth2+"properties/name/nullable", true),
		ofRule(unchecked, "unknown fields", directory+"additionalProperties", nil),
		ofRule(notRequested, "authorization_flow", oauth2+"required", []any{"name"}),
		ofRule(notRequested, "nothing is required", directory+"required", nil),
		ofRule(tooMany, "client_id is shorter", oauth2+"properties/client_id/maxLength", 254),
		ofRule(tooMany, "only one sub_mode", "SubModeEnum/enum", []any{"hashed_user_id", "user_uuid"}),
		ofRule(tooMany, "filter_group is not null", directory+"properties/filter_group/nullable", nil),
		ofRule(tooMany, "no fractions", oauth2+"properties/access_token_validity/pattern", "^[a-z]+=[0-9]+(;[a-z]+=[0-9]+)*$"),
	}
}

// recordFaults returns changes to values on the way to or from the database.
func recordFaults() []fault {
	altered := func(title, name string, change func(value any) any) fault {
		return fault{kind: "value altered", title: title, request: func(body map[string]any) {
			if value, ok := body[name]; ok {
				body[name] = change(value)
			}
		}}
	}
	text := func(change func(string) string) func(any) any {
		return func(value any) any {
			if text, ok := value.(string); ok {
				return change(text)
			}
			return value
		}
	}
	return []fault{
		altered("name is trimmed", "name", text(func(s string) string { return strings.TrimSpace(s) + "." })),
		altered("last line end is lost", "redirect_uris", text(func(s string) string { return strings.TrimSuffix(s, "\n") })),
		altered("address is normalized", "delegated_subject", text(strings.ToLower)),
		altered("false becomes true", "include_claims_in_id_token", func(any) any { return true }),
		altered("list is reversed", "jwks_sources", func(value any) any {
			if list, ok := value.([]any); ok {
				slices.Reverse(list)
			}
			return value
		}),
		altered("numbers are rounded", "credentials", func(value any) any {
			var rounded any
			text, _ := json.Marshal(value)
			_ = json.Unmarshal(text, &rounded)
			return rounded
		}),
	}
}

// answerFaults returns successes, and a response, that deviate from the contract.
func answerFaults() []fault {
	success := func(kind, title string, change func(*recorded)) fault {
		return fault{kind: kind, title: title, answer: func(answer *recorded) {
			if answer.status == http.StatusCreated {
				change(answer)
			}
		}}
	}
	nullList := func(name string) fault {
		return success("null for a list", name, func(answer *recorded) {
			if list, ok := answer.body[name].([]any); ok && len(list) == 0 {
				answer.body[name] = nil
			}
		})
	}
	return []fault{
		nullList("property_mappings"), nullList("jwks_sources"),
		success("missing field", "component", func(answer *recorded) { delete(answer.body, "component") }),
		success("missing field", "a null", func(answer *recorded) {
			maps.DeleteFunc(answer.body, func(_ string, value any) bool { return value == nil })
		}),
		success("field too many", "created_by", func(answer *recorded) { answer.body["created_by"] = "x" }),
		success("value altered", "answer is not what is stored", func(answer *recorded) {
			answer.body["assigned_backchannel_application_name"] = "x"
		}),
		success("wrong status", "200", func(answer *recorded) { answer.status = http.StatusOK }),
		success("wrong content type", "text", func(answer *recorded) { answer.header.Set("Content-Type", "text/plain") }),
		success("missing header", "Cache-Control", func(answer *recorded) { answer.header.Del("Cache-Control") }),
		{kind: "missing header", title: "X-Request-Id", answer: func(answer *recorded) { answer.header.Del("X-Request-Id") }},
	}
}

// problemFaults returns refusals that deviate from the contract.
func problemFaults() []fault {
	refusal := func(kind, title string, change func(*recorded)) fault {
		return fault{kind: kind, title: title, answer: func(answer *recorded) {
			if answer.status >= http.StatusBadRequest {
				change(answer)
			}
		}}
	}
	status := func(title string, status int) fault {
		return refusal("wrong status", title, func(answer *recorded) { answer.status, answer.body["status"] = status, status })
	}
	entry := func(title, name string, value any) fault {
		return refusal("wrong entry", title, func(answer *recorded) {
			if list, ok := answer.body["errors"].([]any); ok {
				list[0].(map[string]any)[name] = value
			}
		})
	}
	missing := func(name string) fault {
		return refusal("missing field", name, func(answer *recorded) { delete(answer.body, name) })
	}
	return []fault{
		status("422", http.StatusUnprocessableEntity), status("500", http.StatusInternalServerError),
		missing("request_id"), missing("errors"),
		refusal("wrong content type", "JSON", func(answer *recorded) { answer.header.Set("Content-Type", "application/json") }),
		entry("at the wrong place", "pointer", ""), entry("with an unknown code", "code", "wrong"),
		refusal("wrong entry", "twice", func(answer *recorded) {
			if list, ok := answer.body["errors"].([]any); ok {
				answer.body["errors"] = append(list, list[0])
			}
		}),
	}
}
