package advice

import "github.com/google/uuid"

const (
	subject = "/delegated_subject"
	object  = "/credentials"
	server  = "Google Identity, Using OAuth 2.0 for Server to Server Applications"

	code   = "delete_action_destructive"
	source = "openapi.yaml, OutgoingSyncDeleteAction"

	// account has the key of RFC 8410, section 10.3, which is short.
	account = `{"type": "service_account", "client_email": "sync@project.example.com", ` +
		`"token_uri": "https://oauth2.example.com/token", ` +
		`"private_key": "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC` +
		`\n-----END PRIVATE KEY-----\n"}`
)

// directoryRules are in the order of the fields of the contract.
//
//nolint:gochecknoglobals // A table that is only read.
var directoryRules = []rule[directory]{
	{Rule: Rule{
		Code: "delegated_subject_service_account", Pointer: subject,
		When: "delegated_subject is the client_email of the credentials",
		Detail: "A service account is not a user of the directory. Use the address of an administrator whom the " +
			"service account acts for.",
		Section: server,
		Bad:     `"delegated_subject": "sync@project.example.com", "credentials": ` + account,
		Good:    `"delegated_subject": "admin@example.com", "credentials": ` + account,
	}, holds: func(d directory) bool { return d.isSubject }},
	{Rule: Rule{
		Code: "delegated_subject_other_domain", Pointer: subject,
		When: "default_group_email_domain is neither the domain of delegated_subject nor below it",
		Detail: "An administrator can manage groups only in the domains of their own directory. Check that both " +
			"domains belong to it.",
		Section: "Google Workspace Admin SDK, Directory API",
		Bad:     `"delegated_subject": "admin@example.com", "default_group_email_domain": "example.org"`,
		Good:    `"delegated_subject": "admin@example.com", "default_group_email_domain": "example.com"`,
	}, holds: func(d directory) bool { return !d.isSubject && d.isInOtherDomain() }},
	{Rule: Rule{
		Code: "credentials_incomplete", Pointer: object,
		When: "credentials are for a service account but lack type, client_email, private_key or token_uri",
		Detail: "Token requests require type, client_email, private_key and token_uri. Use the whole key file of the " +
			"service account.",
		Section: server, Bad: `"credentials": {"type": "service_account"}`, Good: `"credentials": ` + account,
	}, holds: directory.isIncomplete},
	{Rule: Rule{
		Code: "credentials_key_unusable", Pointer: object,
		When: "private_key in credentials is not a private key in PEM, or is larger than 8 KiB",
		Detail: "Nothing can be signed with the key. Copy private_key unchanged from the key file, with its line " +
			"breaks.",
		Section: "RFC 7468, section 10",
		Bad:     `"credentials": {"private_key": "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy"}`,
		Good:    `"credentials": ` + account,
	}, holds: func(d directory) bool { return d.hasUnusableKey }},
	{Rule: Rule{
		Code: "credentials_oauth_client", Pointer: object,
		When:    "credentials have the member installed or web, or the type authorized_user",
		Detail:  "These are the credentials of an OAuth client or of a user. Use the key file of a service account.",
		Section: server, Bad: `"credentials": {"installed": {"client_id": "shop"}}`, Good: `"credentials": ` + account,
	}, holds: func(d directory) bool { return d.isOAuthClient }},
	{Rule: Rule{
		Code: "credentials_json_string", Pointer: object,
		When: "a member of credentials is a string that contains a JSON object",
		Detail: "The credentials themselves must be that object. Send its members, not a string that contains " +
			"them.",
		Section: "openapi.yaml, WorkspaceDirectoryProviderRequest",
		Bad:     `"credentials": {"json": "{\"key\": \"example\"}"}`, Good: `"credentials": {"key": "example"}`,
	}, holds: func(d directory) bool { return d.hasJSONAsString }},
	{Rule: Rule{
		Code: "credentials_empty", Pointer: object, When: "credentials have no members",
		Detail:  "Nothing can be synchronized without credentials. Use the key file of a service account.",
		Section: server, Bad: `"credentials": {}`, Good: `"credentials": ` + account,
	}, holds: func(d directory) bool { return d.isEmpty }},
	{Rule: Rule{
		Code: "credentials_nested", Pointer: object,
		When: "a member of credentials has a private_key, or is privateKeyData of the IAM API",
		Detail: "The key file is inside a member. Send the members of the key file themselves; decode privateKeyData " +
			"from Base64 first.",
		Section: server, Bad: `"credentials": {"key": ` + account + "}", Good: `"credentials": ` + account,
	}, holds: func(d directory) bool { return d.isNested }},
	{Rule: Rule{
		Code: "scopes_incomplete", Pointer: "/scopes",
		When:    "scopes are Google's but lack admin.directory.user or admin.directory.group",
		Detail:  "Synchronization writes users and groups. Add " + userScope + " and " + groupScope + ".",
		Section: "Google Workspace Admin SDK, Directory API",
		Bad:     `"scopes": "` + userScope + `"`, Good: `"scopes": "` + userScope + " " + groupScope + `"`,
	}, holds: directory.lacksDirectoryScope},
	nilUUID("filter_group", "a group, or omit the field", func(d directory) *uuid.UUID { return d.FilterGroup }),
	{Rule: Rule{
		Code: code, Pointer: "/user_delete_action", When: "user_delete_action is delete",
		Detail: "If a user is deleted in the platform, perhaps by mistake, the directory deletes the user and all " +
			"their data. Use suspend or do_nothing.",
		Section: source, Bad: `"user_delete_action": "delete"`, Good: `"user_delete_action": "suspend"`,
	}, holds: func(d directory) bool { return d.UserDeleteAction == "delete" }},
	{Rule: Rule{
		Code: code, Pointer: "/group_delete_action", When: "group_delete_action is delete",
		Detail: "If a group is deleted in the platform, perhaps by mistake, the directory deletes it. Use suspend " +
			"or do_nothing.",
		Section: source, Bad: `"group_delete_action": "delete"`, Good: `"group_delete_action": "do_nothing"`,
	}, holds: func(d directory) bool { return d.GroupDeleteAction == "delete" }},
	{Rule: Rule{
		Code: "domain_malformed", Pointer: "/default_group_email_domain",
		When: `default_group_email_domain contains "@", ":", "/" or white space, ` +
			"or begins or ends with a quotation mark",
		Detail: `This is not a domain name, so group addresses are invalid. Write one such as example.com, without "@", a ` +
			"scheme, white space or quotation marks.",
		Section: "RFC 5321, section 2.3.5",
		Bad:     `"default_group_email_domain": "@example.com"`, Good: `"default_group_email_domain": "example.com"`,
	}, holds: func(d directory) bool {
		return isNoDomain(d.DefaultGroupEmailDomain) && d.DefaultGroupEmailDomain != ""
	}},
}
