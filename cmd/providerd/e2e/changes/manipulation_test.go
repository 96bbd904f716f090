//go:build slow

package changes_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/google/uuid"
)

// manipulation changes the record with a pk by SQL.
type manipulation struct {
	kind       string
	pk         int64
	statements []string
}

// columns returns what providers of both kinds have, and those of a kind, that can be changed, with another value.
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

// randomManipulation returns a manipulation of a stored record.
func (l *ledger) randomManipulation(random *rand.Rand, h history) manipulation {
	kind := []string{"oauth2", "workspace_directory"}[random.IntN(2)]
	pks := h.live[kind]
	pk, other := pks[random.IntN(len(pks))], pks[random.IntN(len(pks))]
	for other == pk {
		other = pks[random.IntN(len(pks))]
	}
	deletion := fmt.Sprintf("DELETE FROM providers WHERE pk = %d", pk)
	switch random.IntN(15) {
	case 0:
		return manipulation{"swapped secret", pk, []string{
			fmt.Sprintf("UPDATE providers SET secret = (SELECT secret FROM providers AS o WHERE pk = %d) WHERE pk = %d", other, pk),
		}}
	case 1:
		return manipulation{"deleted record", pk, []string{deletion}}
	case 2:
		return manipulation{"deletion with a forged event", pk, []string{
			fmt.Sprintf("INSERT INTO deleted_providers SELECT pk, kind, 'x', created_at, created_by, request_id, remote_address, '', "+
				"created_at FROM providers WHERE pk = %d", pk),
			deletion,
			fmt.Sprintf("INSERT INTO provider_changes (at, pk, change, fields, os_user, leaf_before) SELECT at, %d, 'deleted', "+
				"'[]', os_user, leaf_before FROM provider_changes WHERE leaf_before IS NOT NULL AND pk <> %d LIMIT 1", pk, pk),
		}}
	case 3:
		changed := h.updated[random.IntN(len(h.updated))]
		return manipulation{"removed event", changed, []string{
			fmt.Sprintf("DELETE FROM provider_changes WHERE change = 'updated' AND pk = %d", changed),
		}}
	case 4:
		changed := h.updated[random.IntN(len(h.updated))]
		value := []string{
			"os_user = 'x'", "at = " + l.longAgo, `fields = '["x"]'`,
			"leaf_before = (SELECT leaf_before FROM provider_changes WHERE pk <> c.pk AND leaf_before IS NOT NULL LIMIT 1)",
		}[random.IntN(4)]
		return manipulation{"changed event", changed, []string{
			fmt.Sprintf("UPDATE provider_changes AS c SET %s WHERE change = 'updated' AND pk = %d", value, changed),
		}}
	case 5:
		return manipulation{"record with a pk given twice", pk, []string{deletion, insertCopy(pk, other)}}
	case 6:
		unused := []int64{h.deleted[random.IntN(len(h.deleted))], h.last + 1 + random.Int64N(9)}
		pk := unused[random.IntN(len(unused))]
		return manipulation{"inserted record", pk, []string{insertCopy(pk, other), fmt.Sprintf(l.setSequence, h.last)}}
	case 7:
		changed := h.updated[random.IntN(len(h.updated))]
		return manipulation{"hidden event", changed, []string{
			fmt.Sprintf("INSERT INTO provider_changes (id, at, pk, change, fields, os_user, leaf_before) SELECT %d, at, pk, change, "+
				"fields, os_user, leaf_before FROM provider_changes WHERE pk = %d LIMIT 1",
				[]int64{-random.Int64N(9), math.MinInt32}[random.IntN(2)], changed),
		}}
	case 9:
		pk := h.deleted[random.IntN(len(h.deleted))]
		return manipulation{"record stored again", pk, []string{
			insertCopy(pk, other), fmt.Sprintf("DELETE FROM deleted_providers WHERE pk = %d", pk),
		}}
	case 10:
		return manipulation{"deletion that never was", pk, []string{
			fmt.Sprintf("INSERT INTO provider_changes (at, pk, change, fields, os_user, leaf_before) SELECT at, %d, 'deleted', "+
				"'[]', os_user, leaf_before FROM provider_changes WHERE pk <> %d LIMIT 1", pk, pk),
		}}
	case 8:
		statements := []string{
			fmt.Sprintf("DELETE FROM providers WHERE pk = %d", h.last), fmt.Sprintf(l.setSequence, h.last-1),
		}
		if random.IntN(2) == 0 && other != h.last {
			statements = append(statements, insertCopy(h.last, other), fmt.Sprintf(l.setSequence, h.last))
		}
		return manipulation{"sequence reset", h.last, statements}
	default:
		values, settings := l.columns(kind)
		if random.IntN(2) == 0 {
			values = settings
		}
		names := slices.Sorted(maps.Keys(values))
		name := names[random.IntN(len(names))]
		return manipulation{"changed " + name, pk, []string{
			fmt.Sprintf("UPDATE providers SET %s = %s WHERE pk = %d", name, values[name], pk),
		}}
	}
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
