package commands_test

import (
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// faultyURLs are database URLs with a password in an unusual place, or beside another mistake.
func faultyURLs(password string) []string {
	return []string{
		"postgres://u:%zz" + password + "@127.0.0.1:1/x", "postgres://u:/" + password + "@127.0.0.1:1/x",
		"postgres://u:1/" + password + "@127.0.0.1:1/x", "postgres://u:1/?" + password + "@127.0.0.1:1/x",
		"postgres://u:@" + password + "@127.0.0.1:1/x", "postgres://u:?" + password + "@127.0.0.1:1/x",
		"postgres://u: " + password + "@127.0.0.1:1/x", "Postgres://u:" + password + "@127.0.0.1:1/x",
		" postgres://u:" + password + "@127.0.0.1:1/x", "postgres:u:" + password + "@127.0.0.1:1/x",
		"postgres://u:" + password + "@127.0.0.1:1/x?sslmode=zz", "postgres://u:" + password + "@127.0.0.1:port/x",
		"postgres://127.0.0.1:1/x?password=%zz" + password, "postgres://127.0.0.1:1/x?password=&" + password,
		"host=127.0.0.1 password=" + password, "mysql://u:" + password + "@127.0.0.1/x", password,
		"postgres://u:" + password + "\"\n)@127.0.0.1:port/x",
	}
}

// TestInvalidURLsAreNotPrinted runs each command that reads a database URL from its environment. "doctor" and "token list"
// get all faulty URLs. The other commands, which report errors as "token list" does, get some.
func TestInvalidURLsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const password = "canaryofapassword"
	const good = "sqlite:data/providerd.db"
	all := faultyURLs(password)
	some := []string{all[0], all[len(all)-4], all[len(all)-1]}
	for variable, commands := range map[string]map[string][]string{
		"PROVIDERD_DATABASE": {
			"serve --listen 127.0.0.1:0": some, "doctor": all, "token list": all, "migrate": some, "backup x.db": some,
		},
		"PROVIDERD_FROM": {"copy --to " + good: some},
		"PROVIDERD_TO":   {"copy --from " + good: some},
	} {
		for line, urls := range commands {
			t.Run(variable+" of "+line, func(t *testing.T) {
				t.Parallel()
				for _, url := range urls {
					words := append([]string{variable + "=" + url, "PROVIDERD_KEYSET=keyset.json"}, strings.Fields(line)...)
					output, err := providerdtest.Command(t.Context(), t.TempDir(), words...).CombinedOutput()
					if err == nil || strings.Contains(string(output), password) {
						t.Errorf("%s: %v, %s", url, err, output)
					}
				}
			})
		}
	}
}

// TestPasswordInAnArgument checks that a password in an argument is refused and not quoted, whatever the case of the
// scheme.
func TestPasswordInAnArgument(t *testing.T) {
	t.Parallel()
	const password = "canaryofapassword"
	for _, url := range append(faultyURLs(password), "POSTGRESQL://u:"+password+"@127.0.0.1:1/x") {
		command := providerdtest.Command(t.Context(), t.TempDir(), "token", "list", "--keyset", "keyset.json", "--database="+url)
		says := ""
		if strings.HasPrefix(strings.ToLower(url), "postgres") && !strings.HasPrefix(url, "postgres") {
			says = "other users can see a password in an argument"
		}
		if said := providerdtest.ExpectExit(t, command, providerdtest.ExitUsage, says); strings.Contains(said, password) {
			t.Errorf("%s: %s", url, said)
		}
	}
}
