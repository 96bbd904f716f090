package transfer

// eventsTable is the table that creates add rows to.
const eventsTable = "events"

// column is a column of a table.
type column struct {
	name string
	// canonical converts a non-NULL value from a database to a form that every database accepts, and that is the same for
	// equal values of different databases.
	canonical func(value any) (any, error)
}

// table is a table whose rows are copied.
type table struct {
	name string
	// columns lists the key, a positive integer, first.
	columns []column
	// isResumed is set if an interrupted copy resumes where it stopped, because rows hardly ever change. Other tables are
	// copied again from the start.
	isResumed bool
	// generatesKeys is set if the database generates the keys.
	generatesKeys bool
}

func (t table) key() string { return t.columns[0].name }

func (t table) columnNames() []string {
	names := make([]string, len(t.columns))
	for i, column := range t.columns {
		names[i] = column.name
	}
	return names
}

// tables returns all tables except that of the keyset, each after those that it refers to.
//
//nolint:goconst // Column names read best where they are used.
func tables() []table {
	return []table{
		providers(),
		{name: "applications", generatesKeys: true, columns: []column{
			{"id", integer}, {"slug", text}, {"name", text}, {"provider_pk", integer},
		}},
		{name: "backchannels", columns: []column{{"provider_pk", integer}, {"application_id", integer}}},
		{name: "tokens", generatesKeys: true, columns: []column{
			{"id", integer},
			{"name", text},
			{"prefix", text},
			{"digest", blob},
			{"operations", list},
			{"created_at", moment},
			{"expires_at", moment},
			{"revoked_at", moment},
		}},
		{name: eventsTable, isResumed: true, generatesKeys: true, columns: []column{
			{"id", integer},
			{"at", moment},
			{"event", text},
			{"subject", integer},
			{"kind", text},
			{"name", text},
			{"fields", text},
			{"caller", text},
			{"request_id", text},
			{"remote_address", text},
			{"os_user", text},
		}},
	}
}

func providers() table {
	return table{name: "providers", isResumed: true, generatesKeys: true, columns: []column{
		{"pk", integer},
		{"uid", uuid},
		{"kind", text},
		{"name", text},
		{"created_at", moment},
		{"created_by", text},
		{"request_id", text},
		{"remote_address", text},
		{"idempotency_key", text},
		{"secret", blob},
		{"generated", integer},
		{"client_id", text},
		{"property_mappings", list},
		{"authentication_flow", uuid},
		{"authorization_flow", uuid},
		{"client_type", text},
		{"access_code_validity", text},
		{"access_token_validity", text},
		{"refresh_token_validity", text},
		{"include_claims_in_id_token", boolean},
		{"signing_key", uuid},
		{"redirect_uris", text},
		{"sub_mode", text},
		{"issuer_mode", text},
		{"jwks_sources", list},
		{"property_mappings_group", list},
		{"delegated_subject", text},
		{"scopes", text},
		{"exclude_users_service_account", boolean},
		{"filter_group", uuid},
		{"user_delete_action", text},
		{"group_delete_action", text},
		{"default_group_email_domain", text},
	}}
}
