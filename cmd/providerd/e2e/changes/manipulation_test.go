//go:build slow

package changes_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// manipulation changes the record with a pk by SQL.
type manipulation struct {
	kind       string
	pk         int64
	statements []string
}

// columns are the columns of records that can be changed, with another value.
func columns() map[string]map[string]string {
	const flow = "'3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e99'"
	const list = `'["3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e99"]'`
	longer := func(names ...string) map[string]string {
		values := map[string]string{}
		for _, name := range names {
			values[name] = "coalesce(" + name + ", '') || 'x'"
		}
		return values
	}
	all := map[string]map[string]string{
		"providers": longer("name", "created_by", "request_id", "remote_address", "idempotency_key"),
		"oauth2_providers": longer("client_type", "client_id", "access_code_validity", "access_token_validity",
			"refresh_token_validity", "redirect_uris", "sub_mode", "issuer_mode"),
		"workspace_directory_providers": longer("delegated_subject", "scopes", "user_delete_action", "group_delete_action",
			"default_group_email_domain"),
	}
	all["providers"]["created_at"] = "'2020-01-01 00:00:00+00:00'"
	all["providers"]["fingerprint"] = "(SELECT client_secret FROM oauth2_providers LIMIT 1)"
	for _, name := range []string{"authentication_flow", "authorization_flow", "signing_key"} {
		all["oauth2_providers"][name] = flow
	}
	for _, name := range []string{"property_mappings", "jwks_sources"} {
		all["oauth2_providers"][name] = list
	}
	all["oauth2_providers"]["include_claims_in_id_token"] = "NOT include_claims_in_id_token"
	directory := all["workspace_directory_providers"]
	directory["filter_group"], directory["property_mappings"], directory["property_mappings_group"] = flow, list, list
	directory["exclude_users_service_account"] = "NOT exclude_users_service_account"
	return all
}

// randomManipulation returns a manipulation of a stored record.
func (l *ledger) randomManipulation(random *rand.Rand, h history) manipulation {
	tables := map[string]string{"oauth2": "oauth2_providers", "workspace_directory": "workspace_directory_providers"}
	kind := []string{"oauth2", "workspace_directory"}[random.IntN(2)]
	pks := h.live[kind]
	pk, other := pks[random.IntN(len(pks))], pks[random.IntN(len(pks))]
	for other == pk {
		other = pks[random.IntN(len(pks))]
	}
	deletion := []string{
		fmt.Sprintf("DELETE FROM %s WHERE pk = %d", tables[kind], pk), fmt.Sprintf("DELETE FROM providers WHERE pk = %d", pk),
	}
	insertion := func(pk int64) []string {
		return []string{
			fmt.Sprintf("INSERT INTO providers (pk, kind, name, created_at, created_by, request_id, remote_address) "+
				"SELECT %d, kind, name, created_at, created_by, request_id, remote_address FROM providers WHERE pk = %d", pk, other),
			insertCopy(tables[kind], pk, other),
		}
	}
	switch random.IntN(15) {
	case 0:
		column := map[string]string{"oauth2": "client_secret", "workspace_directory": "credentials"}[kind]
		return manipulation{"swapped secret", pk, []string{fmt.Sprintf("UPDATE %s SET %s = (SELECT %s FROM %s AS o WHERE pk = %d) WHERE pk = %d",
			tables[kind], column, column, tables[kind], other, pk)}}
	case 1:
		return manipulation{"deleted record", pk, deletion}
	case 2:
		deletion = append(deletion, fmt.Sprintf("INSERT INTO deleted_providers SELECT pk, kind, 'x', created_at, created_by, "+
			"request_id, remote_address, '', created_at FROM providers WHERE pk = %d", pk))
		slices.Reverse(deletion)
		return manipulation{"deletion with a forged event", pk, []string{
			deletion[0], deletion[2], deletion[1],
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
			"os_user = 'x'", "at = '2020-01-01 00:00:00+00:00'", `fields = '["x"]'`,
			"leaf_before = (SELECT leaf_before FROM provider_changes WHERE pk <> c.pk AND leaf_before IS NOT NULL LIMIT 1)",
		}[random.IntN(4)]
		return manipulation{"changed event", changed, []string{
			fmt.Sprintf("UPDATE provider_changes AS c SET %s WHERE change = 'updated' AND pk = %d", value, changed),
		}}
	case 5:
		return manipulation{"record with a pk given twice", pk, append(deletion, insertion(pk)...)}
	case 6:
		unused := []int64{h.deleted[random.IntN(len(h.deleted))], h.last + 1 + random.Int64N(9)}
		pk := unused[random.IntN(len(unused))]
		return manipulation{"inserted record", pk, append(insertion(pk), fmt.Sprintf(l.setSequence, h.last))}
	case 7:
		changed := h.updated[random.IntN(len(h.updated))]
		return manipulation{"hidden event", changed, []string{
			fmt.Sprintf("INSERT INTO provider_changes (id, at, pk, change, fields, os_user, leaf_before) SELECT %d, at, pk, change, "+
				"fields, os_user, leaf_before FROM provider_changes WHERE pk = %d LIMIT 1",
				[]int64{-random.Int64N(9), math.MinInt32}[random.IntN(2)], changed),
		}}
	case 9:
		pk := h.deleted[random.IntN(len(h.deleted))]
		return manipulation{"record stored again", pk, append(insertion(pk),
			fmt.Sprintf("DELETE FROM deleted_providers WHERE pk = %d", pk))}
	case 10:
		return manipulation{"deletion that never was", pk, []string{
			fmt.Sprintf("INSERT INTO provider_changes (at, pk, change, fields, os_user, leaf_before) SELECT at, %d, 'deleted', "+
				"'[]', os_user, leaf_before FROM provider_changes WHERE pk <> %d LIMIT 1", pk, pk),
		}}
	case 8:
		statements := []string{
			fmt.Sprintf("DELETE FROM workspace_directory_providers WHERE pk = %d", h.last),
			fmt.Sprintf("DELETE FROM providers WHERE pk = %d", h.last), fmt.Sprintf(l.setSequence, h.last-1),
		}
		if random.IntN(2) == 0 && other != h.last {
			statements = append(append(statements, insertion(h.last)...), fmt.Sprintf(l.setSequence, h.last))
		}
		return manipulation{"sequence reset", h.last, statements}
	default:
		table := []string{"providers", tables[kind]}[random.IntN(2)]
		values := columns()[table]
		names := slices.Sorted(maps.Keys(values))
		name := names[random.IntN(len(names))]
		return manipulation{"changed " + name, pk, []string{
			fmt.Sprintf("UPDATE %s SET %s = %s WHERE pk = %d", table, name, values[name], pk),
		}}
	}
}

// insertCopy returns a statement that inserts a copy of the settings of a provider.
func insertCopy(table string, pk, of int64) string {
	if table == "oauth2_providers" {
		return fmt.Sprintf(`INSERT INTO oauth2_providers SELECT %d, authentication_flow, authorization_flow, property_mappings,
			client_type, client_id || 'x', client_secret, access_code_validity, access_token_validity, refresh_token_validity,
			include_claims_in_id_token, signing_key, redirect_uris, sub_mode, issuer_mode, jwks_sources
			FROM oauth2_providers WHERE pk = %d`, pk, of)
	}
	return fmt.Sprintf(`INSERT INTO workspace_directory_providers SELECT %d, property_mappings, property_mappings_group,
		delegated_subject, credentials, scopes, exclude_users_service_account, filter_group, user_delete_action,
		group_delete_action, default_group_email_domain FROM workspace_directory_providers WHERE pk = %d`, pk, of)
}
