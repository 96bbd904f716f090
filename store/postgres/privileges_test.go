//go:build slow

package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// A missing privilege and an exhausted sequence make the database unavailable, with advice. Once they are fixed,
// creates are stored again.
func TestMissingPrivilegesAndSequences(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	name := databaseOf(t, url)
	cluster.Exec(t, name, "CREATE ROLE server LOGIN PASSWORD 'server'", "GRANT CREATE ON SCHEMA public TO server")
	opened := openStore(t, with(url, "user=server&password=server"), newKeyset(t))
	for _, test := range []struct {
		damage []string
		repair string
		says   string
	}{
		{
			[]string{"REVOKE INSERT ON providers FROM server"},
			"GRANT INSERT ON providers TO server",
			"(SQLSTATE 42501); grant the missing privilege to the role of the URL",
		},
		{
			[]string{
				"ALTER SEQUENCE providers_pk_seq MAXVALUE 1000 RESTART 1000", "SELECT nextval('providers_pk_seq')",
			},
			"ALTER SEQUENCE providers_pk_seq NO MAXVALUE",
			"(SQLSTATE 2200H); its MAXVALUE",
		},
	} {
		cluster.Exec(t, name, test.damage...)
		_, err := keyedCreate(t.Context(), opened, test.repair)
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: error is %v, want ErrUnavailable with %q", test.damage, err, test.says)
		}
		cluster.Exec(t, name, test.repair)
		if _, err := keyedCreate(t.Context(), opened, test.repair); err != nil {
			t.Errorf("%s: %v", test.repair, err)
		}
	}
	cluster.Exec(t, name, "REVOKE INSERT ON providers FROM server")
	const says = "providers (SQLSTATE 42501); grant the missing privilege to the role of the URL"
	processtest.WaitUntil(t, "readiness reports the missing privilege", func() bool {
		err := opened.Ready(t.Context())
		return errors.Is(err, store.ErrUnavailable) && strings.Contains(err.Error(), says)
	})
}
