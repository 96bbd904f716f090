package advice

import "example.com/providerd/store"

// directoryRules are in the order of the fields of the contract.
//
//nolint:funlen // A table is as long as its rows are many.
func directoryRules(s store.WorkspaceDirectorySettings) []Rule {
	const (
		subject = "/delegated_subject"
		object  = "/credentials"
		server  = "Google Identity, Using OAuth 2.0 for Server to Server Applications"

		code    = "delete_action_destructive"
		source  = "openapi.yaml, OutgoingSyncDeleteAction"
		deleted = "delete"
	)
	c := readCredentials(s)
	return []Rule{
		{
			Code: "delegated_subject_service_account", Pointer: subject,
			When: "delegated_subject is the client_email of the credentials",
			Detail: "A service account is not a user of the directory. Use the address of an administrator whom the " +
				"service account acts for.",
			Section: server,
			holds:   c.isSubject,
		},
		{
			Code: "delegated_subject_other_domain", Pointer: subject,
			When: "the domains of delegated_subject and default_group_email_domain differ",
			Detail: "An administrator can only manage groups in the domains of their own directory. Check that both " +
				"domains belong to it.",
			Section: "Google Workspace Admin SDK, Directory API",
			holds:   !c.isSubject && isInOtherDomain(s),
		},
		{
			Code: "credentials_incomplete", Pointer: object,
			When: "credentials are a service account without type, client_email or private_key",
			Detail: "Requesting a token needs type, client_email and private_key. Use the whole key file of the service " +
				"account.",
			Section: server,
			holds:   c.isIncomplete(),
		},
		{
			Code: "credentials_key_unusable", Pointer: object,
			When: "private_key in credentials is not a private key in PEM, or has more than 8 KiB",
			Detail: "Nothing can be signed with the key. Copy private_key unchanged from the key file, with its line " +
				"breaks.",
			Section: "RFC 7468, section 10",
			holds:   c.hasUnusableKey,
		},
		{
			Code: "credentials_oauth_client", Pointer: object,
			When: "credentials have the member installed or web",
			Detail: "These are the credentials of an OAuth client, which needs a user to sign in. Use the key file of a " +
				"service account.",
			Section: server,
			holds:   c.isOAuthClient,
		},
		{
			Code: "credentials_json_string", Pointer: object,
			When: "a member of credentials is a string that contains a JSON object",
			Detail: "The credentials themselves must be that object. Send its members, not a string that contains " +
				"them.",
			Section: "openapi.yaml, WorkspaceDirectoryProviderRequest",
			holds:   c.hasJSONAsString,
		},
		{
			Code: "scopes_incomplete", Pointer: "/scopes",
			When: "scopes are Google's, without admin.directory.user or without admin.directory.group",
			Detail: "Synchronization writes users and groups. Add " + userScope + " and " +
				groupScope + ".",
			Section: "Google Workspace Admin SDK, Directory API",
			holds:   c.lacksDirectoryScope(s.Scopes),
		},
		{
			Code: nilUUID, Pointer: "/filter_group", When: "filter_group is the nil UUID",
			Detail: "The nil UUID identifies no group. Set the UUID of a group, or omit the field.", Section: nilUUIDSection,
			holds: isNil(s.FilterGroup),
		},
		{
			Code: code, Pointer: "/user_delete_action", When: "user_delete_action is delete",
			Detail: "If a user is deleted in the platform, perhaps by mistake, the directory deletes the user and all " +
				"their data. Use suspend or do_nothing.",
			Section: source,
			holds:   s.UserDeleteAction == deleted,
		},
		{
			Code: code, Pointer: "/group_delete_action", When: "group_delete_action is delete",
			Detail: "If a group is deleted in the platform, perhaps by mistake, the directory deletes it. Use suspend " +
				"or do_nothing.",
			Section: source,
			holds:   s.GroupDeleteAction == deleted,
		},
	}
}
