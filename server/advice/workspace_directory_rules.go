package advice

import "example.com/providerd/store"

// directoryRules are in the order of the fields of the contract.
func directoryRules(s store.WorkspaceDirectorySettings) []Rule {
	const (
		code    = "delete_action_destructive"
		source  = "openapi.yaml, OutgoingSyncDeleteAction"
		deleted = "delete"
	)
	return []Rule{
		{
			Code: nilUUID, Pointer: "/filter_group", When: "filter_group is the nil UUID",
			Detail: "The nil UUID identifies no group. Set the UUID of a group, or omit the field.", Section: nilUUIDSection,
			holds: isNil(s.FilterGroup),
		},
		{
			Code: code, Pointer: "/user_delete_action", When: "user_delete_action is delete",
			Detail: "If a user is deleted here, perhaps by mistake, the directory deletes the user with all their data. Use " +
				"suspend or do_nothing.",
			Section: source,
			holds:   s.UserDeleteAction == deleted,
		},
		{
			Code: code, Pointer: "/group_delete_action", When: "group_delete_action is delete",
			Detail:  "If a group is deleted here, perhaps by mistake, the directory deletes it. Use suspend or do_nothing.",
			Section: source,
			holds:   s.GroupDeleteAction == deleted,
		},
	}
}
