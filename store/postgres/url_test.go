package postgres_test

import (
	"strings"
	"testing"

	"example.com/providerd/store/postgres"
)

func TestURL(t *testing.T) {
	t.Parallel()
	const password = "canary-of-a-password"
	for url, want := range map[string]struct {
		name        string
		hasPassword bool
	}{
		"postgres://ada@db.example.com/providers":                                {"postgres://db.example.com:5432/providers", false},
		"postgresql://ada@db.example.com:5433/providers":                         {"postgres://db.example.com:5433/providers", false},
		"postgres://ada:" + password + "@db.example.com/providers":               {"postgres://db.example.com:5432/providers", true},
		"postgres://db.example.com/providers?user=ada&password=" + password:      {"postgres://db.example.com:5432/providers", true},
		"postgres://ada@a.example.com:1,b.example.com:2/p?sslmode=require":       {"postgres://a.example.com:1,b.example.com:2/p", false},
		"postgres://ada:" + password + "@a.example.com:1,b.example.com:2/p":      {"postgres://a.example.com:1,b.example.com:2/p", true},
		"Postgres://ada:" + password + "@db.example.com/providers":               {"postgres://db.example.com:5432/providers", true},
		"postgres://ada:?" + password + "@db.example.com/providers":              {"postgres://db.example.com:5432/providers", true},
		"postgres://db.example.com/p?pass%77ord=" + password + "&user=a;b":       {"postgres://db.example.com:5432/p", true},
		"postgres://db.example.com/p?sslpassword=" + password:                    {"postgres://db.example.com:5432/p", true},
		"postgres://ada:@db.example.com:1/p?user=a@b.example.com":                {"postgres://db.example.com:1/p", false},
		"postgres://ada@[::1]:5432/p?target_session_attrs=any&connect_timeout=9": {"postgres://::1:5432/p", false},
	} {
		parsed, err := postgres.ParseURL(url)
		if err != nil || parsed.String() != want.name || parsed.HasPassword() != want.hasPassword {
			t.Errorf("%s: %s, password %v, %v", url, parsed, parsed.HasPassword(), err)
		}
	}
	for _, url := range []string{
		"", "sqlite:x", "postgres:x", "postgres://ada:" + password + "@db.example.com:port/p",
		"postgres://ada:" + password + "@db.example.com/p?sslmode=sometimes",
		"postgres://ada:" + password + "@db.example.com/p?target_session_attrs=some",
		"postgres://ada:" + password + "@db.example.com/p?sslrootcert=/nowhere",
		"postgres://ada:" + password + "%@db.example.com/p",
		"postgres://ada:" + password + "/@db.example.com/p",
		"postgres://ada:@" + password + "@db.example.com/p",
		"postgres://ada:1/" + password + "@db.example.com/p",
		"postgres://ada:1/?" + password + "@db.example.com/p",
		"postgres://ada:1/`: " + password + "%@db.example.com/p",
		"postgres://ada:1/?target_session_attrs=" + password + "@db.example.com/p",
		"postgres://ada@db.example.com/p?password=&" + password,
		"postgres://ada@db.example.com/p?password=%zz" + password,
		"postgres://ada@db.example.com/" + password + "%",
	} {
		if _, err := postgres.ParseURL(url); err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("%s: error is %v", url, err)
		}
	}
}
