//go:build slow

package changes_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"
)

// manipulation changes the record with a pk by SQL.
type manipulation struct {
	kind       string
	pk         int64
	statements []string
	// hasEvent is set if the database adds an event, which is printed.
	hasEvent bool
}

// columns returns the columns of a kind, shared or its own, that can be changed, with another value.
func (l *ledger) columns(kind string) (common, settings map[string]string) {
	const id, list = "'3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e99'", `'["3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e99"]'`
	longer := func(names ...string) map[string]string {
		values := map[string]string{}
		for _, name := range names {
			values[name] = "coalesce(" + name + ", '') || 'x'"
		}
		return values
	}
	swap := func(name, first, second string) string {
		return fmt.Sprintf("CASE %s WHEN '%s' THEN '%s' ELSE '%[2]s' END", name, first, second)
	}
	common = longer("name", "created_by", "request_id", "remote_address", "idempotency_key")
	maps.Copy(common, map[string]string{
		"uid": id, "created_at": l.longAgo, "generated": "3 - generated", "property_mappings": list,
	})
	if kind == "oauth2" {
		settings = longer("client_id", "access_code_validity", "access_token_validity", "refresh_token_validity",
			"redirect_uris")
		maps.Copy(settings, map[string]string{
			"authentication_flow": id, "authorization_flow": id, "signing_key": id, "jwks_sources": list,
			"client_type": swap("client_type", "public", "confidential"), "sub_mode": swap("sub_mode", "user_id", "user_upn"),
			"issuer_mode":                swap("issuer_mode", "global", "per_provider"),
			"include_claims_in_id_token": "NOT include_claims_in_id_token",
		})
		return common, settings
	}
	settings = longer("delegated_subject", "scopes", "default_group_email_domain")
	maps.Copy(settings, map[string]string{
		"filter_group": id, "property_mappings_group": list,
		"user_delete_action":            swap("user_delete_action", "delete", "suspend"),
		"group_delete_action":           swap("group_delete_action", "delete", "suspend"),
		"exclude_users_service_account": "NOT exclude_users_service_account",
	})
	return common, settings
}

func (l *ledger) randomManipulation(random *rand.Rand) manipulation {
	kind := []string{"oauth2", "workspace_directory"}[random.IntN(2)]
	pks := l.live[kind]
	pk, other := pks[random.IntN(len(pks))], pks[random.IntN(len(pks))]
	for other == pk {
		other = pks[random.IntN(len(pks))]
	}
	next := l.lastPK + 1 + random.Int64N(9)
	deletion := fmt.Sprintf("DELETE FROM providers WHERE pk = %d", pk)
	updated, deleted := l.updated[random.IntN(len(l.updated))], l.deleted[random.IntN(len(l.deleted))]
	const update = " WHERE event = 'provider updated' AND subject = "
	const addEvent = "INSERT INTO events (at, event, subject, kind, name, fields, caller, request_id, remote_address, " +
		"os_user) SELECT at, '%s', %d, kind, name, fields, caller, request_id, remote_address, os_user FROM events " +
		"WHERE event = '%[1]s' AND subject <> %[2]d LIMIT 1"
	set := func(assignment string) []string {
		return []string{fmt.Sprintf("UPDATE providers SET %s WHERE pk = %d", assignment, pk)}
	}
	const otherKind = "kind = CASE kind WHEN 'oauth2' THEN 'workspace_directory' ELSE 'oauth2' END"
	manipulations := []manipulation{
		{kind: "swapped secret", pk: pk, statements: set(
			fmt.Sprintf("secret = (SELECT secret FROM providers AS o WHERE pk = %d)", other))},
		{kind: "changed kind", pk: pk, statements: set(otherKind)},
		{kind: "another type", pk: pk, statements: set("property_mappings = " + l.notList)},
		{kind: "cast", pk: pk, statements: set("name = CAST(name AS " + l.blob + ")")},
		{kind: "deleted record", pk: pk, statements: []string{deletion}},
		{kind: "removed event", pk: updated, statements: []string{"DELETE FROM events" + update + fmt.Sprint(updated)}},
		{kind: "removed event of a create", pk: pk, statements: []string{
			fmt.Sprintf("DELETE FROM events WHERE event = 'provider created' AND subject = %d", pk),
		}},
		{kind: "removed events of a deletion", pk: deleted, statements: []string{
			fmt.Sprintf("DELETE FROM events WHERE event = 'provider deleted' AND subject = %d", deleted), insertCopy(deleted, other),
		}},
		{kind: "changed event", pk: updated, statements: []string{"UPDATE events SET " + []string{
			"os_user = 'x'", "at = " + l.longAgo, "fields = 'x'", "caller = 'x'", "request_id = 'x'", "remote_address = 'x'",
			otherKind, "event = 'provider renamed'",
		}[random.IntN(8)] + update + fmt.Sprint(updated)}},
		{kind: "record with a pk given twice", pk: pk, statements: []string{deletion, insertCopy(pk, other)}},
		{kind: "record inserted without an event", pk: next, statements: []string{l.disable, insertCopy(next, other)}},
		{kind: "inserted record", pk: next, statements: []string{insertCopy(next, other)}, hasEvent: true},
		{kind: "record stored again", pk: deleted, statements: []string{insertCopy(deleted, other)}},
		{kind: "record stored again without an event", pk: deleted, statements: []string{l.disable, insertCopy(deleted, other)}},
		{kind: "deletion that never was", pk: pk, statements: []string{fmt.Sprintf(addEvent, "provider deleted", pk)}},
		{kind: "event with a low id", pk: updated, statements: []string{
			fmt.Sprintf("UPDATE events SET id = %d", -random.Int64N(9)) + update + fmt.Sprint(updated),
		}},
		{kind: "sequence reset", pk: l.lastPK, statements: []string{
			fmt.Sprintf("DELETE FROM providers WHERE pk = %d", l.lastPK), fmt.Sprintf(l.setSequence, l.lastPK-1),
		}},
	}
	if number := random.IntN(2 * len(manipulations)); number < len(manipulations) {
		return manipulations[number]
	}
	values, settings := l.columns(kind)
	if random.IntN(2) == 0 {
		values = settings
	}
	names := slices.Sorted(maps.Keys(values))
	name := names[random.IntN(len(names))]
	return manipulation{kind: "changed " + name, pk: pk, statements: set(name + " = " + values[name])}
}

// insertCopy returns a statement that inserts a copy of a provider with another pk and other unique values.
func insertCopy(pk, of int64) string {
	const columns = `kind, name, created_at, created_by, request_id, remote_address, secret, generated, property_mappings,
		authentication_flow, authorization_flow, client_type, access_code_validity, access_token_validity,
		refresh_token_validity, include_claims_in_id_token, signing_key, redirect_uris, sub_mode, issuer_mode, jwks_sources,
		property_mappings_group, delegated_subject, scopes, exclude_users_service_account, filter_group, user_delete_action,
		group_delete_action, default_group_email_domain`
	return fmt.Sprintf("INSERT INTO providers (pk, uid, client_id, "+columns+") SELECT %d, '%s', client_id || 'x', "+columns+
		" FROM providers WHERE pk = %d", pk, uuid.New(), of)
}
