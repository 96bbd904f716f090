package serve

import (
	"testing"

	"example.com/providerd/cmd/providerd/flags"
)

// TestTokenCommand checks that the command leads to the server's database, and never contains a password.
func TestTokenCommand(t *testing.T) {
	t.Parallel()
	const create = "providerd token create --name NAME --allow all"
	for _, test := range []struct{ database, keyset, want string }{
		{flags.DefaultDatabase, "", create},
		{"sqlite:it's.db", "k.json", create + ` --database 'sqlite:it'\''s.db' --keyset 'k.json'`},
		{"postgres://ada@db.example.com/x", "k.json", create + " --database 'postgres://ada@db.example.com/x' --keyset 'k.json'"},
		{"postgres://ada:hunter2@db.example.com/x", "k.json", "PROVIDERD_DATABASE=URL " + create + " --keyset 'k.json'"},
	} {
		command := &Command{}
		if err := command.Database.UnmarshalText([]byte(test.database)); err != nil {
			t.Fatal(err)
		}
		command.Keyset = test.keyset
		if got := command.tokenCommand(); got != test.want {
			t.Errorf("command is %s, want %s", got, test.want)
		}
	}
}
