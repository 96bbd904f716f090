//go:build slow

package postgres_test

import (
	"testing"
	"time"
)

// Readiness is that creates are committed.
func TestReadinessIsWritability(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		harm, heal func(t *testing.T, r *replicated)
	}{
		"frozen": {
			func(_ *testing.T, r *replicated) { r.primary.Freeze() },
			func(_ *testing.T, r *replicated) { r.primary.Thaw() },
		},
		"read-only": {
			func(t *testing.T, r *replicated) { r.primary.Set(t, "default_transaction_read_only", "on") },
			func(t *testing.T, r *replicated) {
				r.primary.Exec(t, "postgres", "SET default_transaction_read_only = off",
					"ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()")
			},
		},
		"without its standby": {
			func(_ *testing.T, r *replicated) { r.standby.Freeze() },
			func(_ *testing.T, r *replicated) { r.standby.Thaw() },
		},
		"restarted": {
			func(_ *testing.T, r *replicated) { r.primary.Kill() },
			func(t *testing.T, r *replicated) { r.primary.Start(t) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReplicated(t)
			opened := openStore(t, r.url, newKeyset(t))
			if err := opened.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			change.harm(t, r)
			harmed := time.Now()
			for opened.Ready(t.Context()) == nil {
				if time.Since(harmed) > 2*time.Second {
					t.Fatal("ready after 2 seconds")
				}
			}
			change.heal(t, r)
			awaitReady(t, opened)
			if _, err := keyedCreate(t.Context(), opened, "after"); err != nil {
				t.Error(err)
			}
		})
	}
}
