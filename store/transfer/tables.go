package transfer

// column is a column of a table.
type column struct {
	name string
	// canonical turns what a database returned, unless it is NULL, into what every database takes. Equal values are then
	// equal, whichever database they are from.
	canonical func(value any) (any, error)
}

// table is a table whose rows are copied.
type table struct {
	name string
	// columns begin with the key, which is a positive integer.
	columns []column
	// isResumed tells that an interrupted copy goes on where it was, because rows hardly ever change. Other tables are
	// copied from their beginning again.
	isResumed bool
	// givesKeys tells that the database makes the keys.
	givesKeys bool
	// extensions are tables whose rows have the key of a row of this one.
	extensions []string
}

func (t table) key() string { return t.columns[0].name }

func (t table) columnNames() []string {
	names := make([]string, len(t.columns))
	for i, column := range t.columns {
		names[i] = column.name
	}
	return names
}

// tables are all tables but that of the keyset, each behind those that it refers to.
//
//nolint:goconst // The names of columns read best where they are used.
func tables() []table {
	return []table{
		providers(), oauth2Providers(), directoryProviders(),
		{name: "applications", givesKeys: true, columns: []column{
			{"id", integer}, {"slug", text}, {"name", text}, {"provider_pk", integer},
		}},
		{name: "backchannels", columns: []column{{"provider_pk", integer}, {"application_id", integer}}},
		{name: "deleted_providers", columns: []column{
			{"pk", integer},
			{"kind", text},
			{"name", text},
			{"created_at", moment},
			{"created_by", text},
			{"request_id", text},
			{"remote_address", text},
			{"client_id", text},
			{"deleted_at", moment},
		}},
		{name: "tokens", givesKeys: true, columns: []column{
			{"id", integer},
			{"name", text},
			{"prefix", text},
			{"digest", blob},
			{"operations", list},
			{"created_at", moment},
			{"expires_at", moment},
			{"revoked_at", moment},
		}},
		{name: "key_events", givesKeys: true, columns: []column{
			{"id", integer}, {"at", moment}, {"event", text}, {"key_id", integer},
		}},
	}
}

const (
	oauth2Table    = "oauth2_providers"
	directoryTable = "workspace_directory_providers"
)

func providers() table {
	return table{
		name: "providers", isResumed: true, givesKeys: true, extensions: []string{oauth2Table, directoryTable},
		columns: []column{
			{"pk", integer},
			{"kind", text},
			{"name", text},
			{"created_at", moment},
			{"created_by", text},
			{"request_id", text},
			{"remote_address", text},
			{"idempotency_key", text},
			{"fingerprint", blob},
		},
	}
}

func oauth2Providers() table {
	return table{name: oauth2Table, isResumed: true, columns: []column{
		{"pk", integer},
		{"authentication_flow", uuid},
		{"authorization_flow", uuid},
		{"property_mappings", list},
		{"client_type", text},
		{"client_id", text},
		{"client_secret", blob},
		{"access_code_validity", text},
		{"access_token_validity", text},
		{"refresh_token_validity", text},
		{"include_claims_in_id_token", boolean},
		{"signing_key", uuid},
		{"redirect_uris", text},
		{"sub_mode", text},
		{"issuer_mode", text},
		{"jwks_sources", list},
	}}
}

func directoryProviders() table {
	return table{name: directoryTable, isResumed: true, columns: []column{
		{"pk", integer},
		{"property_mappings", list},
		{"property_mappings_group", list},
		{"delegated_subject", text},
		{"credentials", blob},
		{"scopes", text},
		{"exclude_users_service_account", boolean},
		{"filter_group", uuid},
		{"user_delete_action", text},
		{"group_delete_action", text},
		{"default_group_email_domain", text},
	}}
}

// keyset is the table whose row tells whether a database is all there.
func keyset() table {
	return table{name: "keyset", columns: []column{{"pk", integer}, {"sealed", blob}, {"fingerprint", blob}}}
}
