package advice

import (
	"example.com/providerd/gen/api"
	"example.com/providerd/store"
)

// directoryRules are in the order of the fields of the contract.
func directoryRules() []rule[store.WorkspaceDirectorySettings] {
	const (
		code   = "delete_action_destructive"
		source = "openapi.yaml, OutgoingSyncDeleteAction"
	)
	deletes := func(action string) bool { return action == string(api.OutgoingSyncDeleteActionDelete) }
	return []rule[store.WorkspaceDirectorySettings]{
		{
			Rule{
				Code: nilUUID, Pointer: "/filter_group", When: "filter_group is the nil UUID",
				Detail: "the nil UUID stands for no group; name the group, or leave the field out", Section: nilUUIDSection,
			},
			when(func(s store.WorkspaceDirectorySettings) bool { return isNil(s.FilterGroup) }),
		},
		{
			Rule{
				Code: code, Pointer: "/user_delete_action", When: "user_delete_action is delete",
				Detail: "a user who is deleted here, perhaps by mistake, is deleted in the directory with all that is theirs; " +
					"use suspend or do_nothing, which delete nothing",
				Section: source,
			},
			when(func(s store.WorkspaceDirectorySettings) bool { return deletes(s.UserDeleteAction) }),
		},
		{
			Rule{
				Code: code, Pointer: "/group_delete_action", When: "group_delete_action is delete",
				Detail: "a group that is deleted here, perhaps by mistake, is deleted in the directory; use suspend or " +
					"do_nothing, which delete nothing",
				Section: source,
			},
			when(func(s store.WorkspaceDirectorySettings) bool { return deletes(s.GroupDeleteAction) }),
		},
	}
}
