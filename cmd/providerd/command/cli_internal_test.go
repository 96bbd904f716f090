package command

import (
	"slices"
	"testing"
)

// TestCommandLineIsSmall counts the commands, and the names of their flags.
func TestCommandLineIsSmall(t *testing.T) {
	t.Parallel()
	const maxFlags = 60
	commands, flags := []string{}, map[string]bool{}
	for _, command := range newTestParser(t).Model.Leaves(false) {
		if name := commandName(command); name != "help" && name != "man" {
			commands = append(commands, name)
		}
		for _, flag := range slices.Concat(command.AllFlags(false)...) {
			flags[flag.Name] = true
		}
	}
	if want := []string{
		"serve", "migrate",
		"provider list", "provider show", "provider export", "provider create", "provider update", "provider delete",
		"apply",
		"application create", "application list", "application link", "application unlink", "application delete",
		"token create", "token list", "token renew", "token revoke",
		"audit list", "audit verify",
		"key create", "key list", "key rotate", "key reseal", "key rewrap",
		"backup", "restore", "copy", "doctor", "health", "version", "completion",
	}; !slices.Equal(commands, want) {
		t.Errorf("commands are %q, want %q", commands, want)
	}
	if len(flags) > maxFlags {
		t.Errorf("there are %d flags, want at most %d", len(flags), maxFlags)
	}
}
