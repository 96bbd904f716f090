// Package advice checks the settings of a provider against the standards of OAuth 2.0 and OpenID Connect. Advice
// refuses nothing; package server/contract refuses what the contract forbids.
//
// A piece of advice consists of the sentences of its rule and of line numbers, never of a value of the record. Start
// with OAuth2 in advice.go, then read the rules in oauth2_rules.go.
package advice

import (
	"fmt"
	"strconv"
	"strings"

	"example.com/providerd/store/records"
)

// Advice is what one rule says about one field.
type Advice struct {
	// Code names the rule.
	Code string `json:"code"`
	// Pointer leads to the field (JSON Pointer, RFC 6901).
	Pointer string `json:"pointer"`
	// Detail says what is wrong and what to do. For redirect_uris, it begins with the line numbers.
	Detail string `json:"detail"`
	// Section names the document and section that the rule is based on.
	Section string `json:"section"`
}

// Rule is a rule of advice. A code may have rules for several fields.
type Rule struct {
	// Code is in snake_case, and does not change between releases.
	Code string
	// Pointer leads to the field (JSON Pointer, RFC 6901).
	Pointer string
	// When is the condition. Detail says what is wrong if it holds, and what to do.
	When, Detail string
	// Section names the document and section that the rule is based on.
	Section string
	// Seen is what happened without it: to a library of that version, or to somebody.
	Seen string
	// Bad is a part of a request that the advice is about, and Good a part that follows it.
	Bad, Good string
}

// rule is a rule with its condition on some settings: holds or, if the field has lines, the lines for which it holds.
type rule[Settings any] struct {
	Rule
	holds func(Settings) bool
	lines func(Settings) lines
}

// OAuth2 returns the advice for an OAuth2 provider, in the order of its fields, at most one item per rule; an empty
// list if there is none. It checks 1,000 lines and 64 KiB of redirect_uris at most, and is told what the server chose.
func OAuth2(settings records.OAuth2Settings, generated records.Generated) []Advice {
	uris := parseRedirectURIs(settings.RedirectURIs)
	return apply(oauth2Rules, client{settings, generated, uris, settings.ClientSecret.Reveal()})
}

// OAuth2Rules returns the rules for OAuth2 providers, in the order of the fields.
func OAuth2Rules() []Rule { return plain(oauth2Rules) }

// WorkspaceDirectory returns the advice for a workspace directory-sync provider, as OAuth2 does.
func WorkspaceDirectory(settings records.WorkspaceDirectorySettings) []Advice {
	return apply(directoryRules, directory{settings, readCredentials(settings)})
}

// WorkspaceDirectoryRules returns the rules for workspace directory-sync providers, in the order of the fields.
func WorkspaceDirectoryRules() []Rule { return plain(directoryRules) }

func plain[Settings any](rules []rule[Settings]) []Rule {
	plain := make([]Rule, len(rules))
	for i, rule := range rules {
		plain[i] = rule.Rule
	}
	return plain
}

func apply[Settings any](rules []rule[Settings], settings Settings) []Advice {
	advice := []Advice{}
	for _, rule := range rules {
		var found lines
		if rule.lines != nil {
			found = rule.lines(settings)
		}
		if len(found) > 0 || rule.holds != nil && rule.holds(settings) {
			advice = append(advice, Advice{
				Code: rule.Code, Pointer: rule.Pointer, Detail: found.prefix() + rule.Detail, Section: rule.Section,
			})
		}
	}
	return advice
}

const maxListedLines = 10

// lines holds line numbers, counted from 1.
type lines []int

// prefix returns the beginning of a detail, such as "Lines 1, 2 and 5: "; "" for no lines.
func (l lines) prefix() string {
	switch len(l) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Line %d: ", l[0])
	}
	listed, last := l[:len(l)-1], strconv.Itoa(l[len(l)-1])
	if more := len(l) - maxListedLines; more > 0 {
		listed, last = l[:maxListedLines], fmt.Sprint(more, " more")
	}
	numbers := make([]string, len(listed))
	for i, number := range listed {
		numbers[i] = strconv.Itoa(number)
	}
	return "Lines " + strings.Join(numbers, ", ") + " and " + last + ": "
}

// The limits of a Link header, without the last link.
const (
	maxLinks     = 20
	maxLinkBytes = 2 << 10
)

// Link returns advice as the value of a Link header (RFC 8288): a link to each rule on the page at path, with the field
// as a URI fragment (RFC 6901, section 6) in anchor and the sentence in title. It returns "" if there is no advice. It
// has at most 20 links and 2 KiB; if there is more advice, a last link leads to the page.
func Link(given []Advice, path string) string {
	var links []string
	length := 0
	for _, item := range given {
		title := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(item.Detail)
		link := fmt.Sprintf(`<%s#%s>; rel="help"; anchor="#%s"; title="%s"`, path, item.Code, item.Pointer, title)
		length += len(link) + len(", ")
		if len(links) == maxLinks || length > maxLinkBytes {
			links = append(links, fmt.Sprintf(`<%s>; rel="help"`, path))
			break
		}
		links = append(links, link)
	}
	return strings.Join(links, ", ")
}
