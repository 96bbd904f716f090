//go:build slow

package postgres_test

import (
	"strings"
	"testing"

	"example.com/providerd/store"
)

// either returns the URL of both servers.
func (r *replicated) either() string {
	return strings.Replace(r.url, r.primary.Address(), r.primary.Address()+","+r.standby.Address(), 1)
}

// stopReplication makes the primary commit what the standby will not have.
func (r *replicated) stopReplication(t *testing.T) {
	t.Helper()
	r.primary.Set(t, "synchronous_standby_names", "")
	r.standby.Stop(t)
}

// failOver replaces the primary with the standby.
func (r *replicated) failOver(t *testing.T) {
	t.Helper()
	r.primary.Kill()
	r.standby.Start(t)
	r.standby.Promote(t)
}

// A failover takes a rotation back, and another rotation follows. Every secret that is still there opens, and each
// replica seals with the key that the database has, regardless of the key in its memory.
func TestLostRotation(t *testing.T) {
	t.Parallel()
	r, keyset := newReplicated(t), newKeyset(t)
	first, second := openStore(t, r.either(), keyset), openStore(t, r.either(), keyset)
	operator := openOperator(t, r.either(), keyset)
	createEach(t, first, "kept")
	r.stopReplication(t)
	lost := rotate(t, operator)
	createEach(t, first, "lost")
	createEach(t, second, "lost too")
	r.failOver(t)
	createEach(t, first, "lost")
	expectSecrets(t, second, "kept", "lost")
	next := rotate(t, operator)
	createEach(t, second, "next")
	createEach(t, first, "last")
	for _, opened := range []*store.Store{first, second, operator, openOperator(t, r.either(), keyset)} {
		expectSecrets(t, opened, "kept", "lost", "next", "last")
	}
	if uses := keyUses(t, operator); len(uses) != 2 || uses[lost] != 0 || uses[next] != 2 {
		t.Errorf("secrets by key are %v, want 2 for the first and for %d", uses, next)
	}
}

// A failover takes resealed secrets back. The keys that they have again are not removed.
func TestLostReseal(t *testing.T) {
	t.Parallel()
	r, keyset := newReplicated(t), newKeyset(t)
	opened, operator := openStore(t, r.either(), keyset), openOperator(t, r.either(), keyset)
	createEach(t, opened, "a", "b")
	rotate(t, operator)
	r.stopReplication(t)
	hasFailed := false
	removed, err := operator.Reseal(t.Context(), func(done, _ int64) {
		if done > 0 && !hasFailed {
			hasFailed = true
			r.failOver(t)
		}
	})
	if err != nil || removed != 1 || !hasFailed {
		t.Errorf("%d keys are removed, want 1, %v; failed over: %v", removed, err, hasFailed)
	}
	expectSecrets(t, openOperator(t, r.either(), keyset), "a", "b")
}
