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
			Detail: "the nil UUID stands for no group; name the group, or leave the field out", Section: nilUUIDSection,
			holds: isNil(s.FilterGroup),
		},
		{
			Code: code, Pointer: "/user_delete_action", When: "user_delete_action is delete",
			Detail: "a user who is deleted here, perhaps by mistake, is deleted in the directory with all that is theirs; " +
				"use suspend or do_nothing, which delete nothing",
			Section: source,
			holds:   s.UserDeleteAction == deleted,
		},
		{
			Code: code, Pointer: "/group_delete_action", When: "group_delete_action is delete",
			Detail: "a group that is deleted here, perhaps by mistake, is deleted in the directory; use suspend or " +
				"do_nothing, which delete nothing",
			Section: source,
			holds:   s.GroupDeleteAction == deleted,
		},
	}
}
