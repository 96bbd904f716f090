// Package advice says what the settings of a provider could do better, by the standards of OAuth 2.0 and OpenID
// Connect. Advice refuses nothing: what breaks the contract is refused long before.
//
// All that it says are the sentences of its rules and numbers of lines. No value of a record is ever in it. What the
// contract forbids is in server/contract. Start with OAuth2 in advice.go, then the rules in oauth2_rules.go.
package advice

import "example.com/providerd/store"

// Advice is what one rule says about one field.
type Advice struct {
	// Code names the rule.
	Code string `json:"code"`
	// Pointer leads to the field (JSON Pointer, RFC 6901).
	Pointer string `json:"pointer"`
	// Detail is what to do, and why. For redirect_uris it begins with the lines that it is about.
	Detail string `json:"detail"`
	// Section is the document that the rule comes from, with the section.
	Section string `json:"section"`
}

// Rule is what a piece of advice is given by. A code may have a rule for each of several fields.
type Rule struct {
	// Code is in snake_case, and stays what it is.
	Code string
	// Pointer leads to the field (JSON Pointer, RFC 6901).
	Pointer string
	// When is the condition, and Detail what to do where it holds, and why.
	When, Detail string
	// Section is the document that the rule comes from, with the section.
	Section string
	// holds tells that the condition holds for a provider, and lines are the numbers of those that it holds for, where
	// the field has lines.
	holds bool
	lines lines
}

// OAuth2 returns the advice for an OAuth2 provider, in the order of its fields, one for each rule at most; an empty
// list where there is none. Of redirect_uris, the first 1,000 lines are looked at.
func OAuth2(settings store.OAuth2Settings) []Advice {
	return apply(oauth2Rules(client{settings, parseRedirectURIs(settings.RedirectURIs)}))
}

// OAuth2Rules returns the rules for OAuth2 providers, in the order of the fields.
func OAuth2Rules() []Rule { return oauth2Rules(client{}) }

// WorkspaceDirectory returns the advice for a workspace directory-sync provider, in the order of its fields, one for
// each rule at most; an empty list where there is none.
func WorkspaceDirectory(settings store.WorkspaceDirectorySettings) []Advice {
	return apply(directoryRules(settings))
}

// WorkspaceDirectoryRules returns the rules for workspace directory-sync providers, in the order of the fields.
func WorkspaceDirectoryRules() []Rule { return directoryRules(store.WorkspaceDirectorySettings{}) }

// apply gives the advice of the rules whose condition holds.
func apply(rules []Rule) []Advice {
	advice := []Advice{}
	for _, rule := range rules {
		if rule.holds || len(rule.lines) > 0 {
			advice = append(advice, Advice{
				Code: rule.Code, Pointer: rule.Pointer, Detail: rule.lines.prefix() + rule.Detail, Section: rule.Section,
			})
		}
	}
	return advice
}
