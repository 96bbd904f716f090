//go:build slow

package postgres_test

import (
	"testing"
	"time"
)

// A store is ready only while creates are committed.
func TestReadinessIsWritability(t *testing.T) {
	t.Parallel()
	r := newReplicated(t)
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
