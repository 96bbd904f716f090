//go:build slow

package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest/processtest"
)

// A store is ready only while creates are committed.
func TestReadinessIsWritability(t *testing.T) {
	t.Parallel()
	r := newReplicated(t, "")
	opened := openStore(t, r.url, newKeyset(t))
	awaitReady(t, opened)
	for _, change := range []struct {
		name       string
		fail, heal func()
	}{
		{"frozen", r.primary.Freeze, r.primary.Thaw},
		{"without its standby", r.standby.Freeze, r.standby.Thaw},
		{"read-only", func() { r.primary.Set(t, "default_transaction_read_only", "on") }, func() {
			r.primary.Exec(t, "postgres", "SET default_transaction_read_only = off",
				"ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
		}},
		{"restarted", r.primary.Kill, func() { r.primary.Start(t) }},
	} {
		change.fail()
		failed := time.Now()
		for opened.Ready(t.Context()) == nil {
			if time.Since(failed) > 2*time.Second {
				t.Fatalf("%s: ready after 2 seconds", change.name)
			}
		}
		change.heal()
		awaitReady(t, opened)
		if _, err := keyedCreate(t.Context(), opened, change.name); err != nil {
			t.Errorf("after %s: %v", change.name, err)
		}
	}
}

// While the server refuses rows, validations are refused and the store is not ready, but replays succeed. Once rows can
// be stored, the store recovers without a create.
func TestRefusedRows(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	if _, err := keyedCreate(t.Context(), opened, "before"); err != nil {
		t.Fatal(err)
	}
	// The error of a server that can write its WAL but cannot extend its tables.
	cluster.Exec(t, databaseOf(t, url),
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`,
		`CREATE TRIGGER refuses BEFORE INSERT ON providers FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if _, err := keyedCreate(t.Context(), opened, "new"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("create: error is %v, want ErrUnavailable", err)
	}
	for range 2 {
		if replayed, err := keyedCreate(t.Context(), opened, "before"); err != nil || !replayed {
			t.Errorf("replayed is %v, %v", replayed, err)
		}
		if isMade, err := keyedValidate(t.Context(), opened, "before"); err != nil || !isMade {
			t.Errorf("validated as made %v, %v", isMade, err)
		}
		if _, err := keyedValidate(t.Context(), opened, "new"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("validation: error is %v, want ErrUnavailable", err)
		}
		if err := opened.Ready(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Ready: error is %v, want ErrUnavailable", err)
		}
	}
	cluster.Exec(t, databaseOf(t, url), "DROP TRIGGER refuses ON providers")
	awaitReady(t, opened)
	if isMade, err := keyedValidate(t.Context(), opened, "new"); err != nil || isMade {
		t.Errorf("validated as made %v, %v", isMade, err)
	}
	if replayed, err := keyedCreate(t.Context(), opened, "new"); err != nil || replayed {
		t.Errorf("replayed is %v, %v", replayed, err)
	}
}

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
			"(SQLSTATE 42501); grant the missing privilege to the role in the URL",
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
	const says = "providers (SQLSTATE 42501); grant the missing privilege to the role in the URL"
	processtest.WaitUntil(t, "readiness reports the missing privilege", func() bool {
		err := opened.Ready(t.Context())
		return errors.Is(err, store.ErrUnavailable) && strings.Contains(err.Error(), says)
	})
}
