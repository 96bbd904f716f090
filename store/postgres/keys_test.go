//go:build slow

package postgres_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/seal"
)

const insertDeadReplica = "INSERT INTO replicas (id, name, keys, beat) VALUES ('dead', 'gone', '[1]', 7)"

// copyKeyset copies a keyset file as an operator copies it to another machine.
func copyKeyset(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".new", content, 0o600)
	}
	if err := errors.Join(err, os.Rename(to+".new", to)); err != nil {
		t.Fatal(err)
	}
}

// openOperator opens a store as commands do.
func openOperator(t *testing.T, url, keyset string) *store.Store {
	t.Helper()
	database, err := postgres.Open(t.Context(), parse(t, url), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := store.Open(t.Context(), database, keyset)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

func currentID(t *testing.T, keyset string) uint32 {
	t.Helper()
	ring, err := seal.OpenKeyring(keyset)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ring.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return keys.PrimaryID()
}

func replaysAll(t *testing.T, replicas []*store.Store, keys ...string) {
	t.Helper()
	for i, opened := range replicas {
		for _, key := range keys {
			if replayed, err := keyedCreate(t.Context(), opened, key); err != nil || !replayed {
				t.Errorf("replica %d, %s: replayed is %v, %v", i, key, replayed, err)
			}
		}
	}
}

// Each replica has its own copy of the keyset. A key is added to one, copied to the others, and only then promoted, so
// that no replica ever reads a secret that it cannot decrypt.
func TestPromoteKeyRequiresItOnAllReplicas(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url, first := cluster.CreateDatabase(t), newKeyset(t)
	second := filepath.Join(t.TempDir(), "keyset.json")
	copyKeyset(t, first, second)
	old := filepath.Join(t.TempDir(), "keyset.json")
	copyKeyset(t, first, old)
	replicas := []*store.Store{openStore(t, url, first), openStore(t, url, second)}
	if _, err := keyedCreate(t.Context(), replicas[0], "before"); err != nil {
		t.Fatal(err)
	}

	operator := openOperator(t, url, first)
	if _, err := operator.PromoteKey(t.Context()); !errors.Is(err, store.ErrKeyPromoted) {
		t.Errorf("nothing to promote: error is %v, want ErrKeyPromoted", err)
	}
	primary := currentID(t, first)
	added, err := operator.AddKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operator.PromoteKey(t.Context()); !errors.Is(err, store.ErrReplicaLacksKey) ||
		!strings.Contains(err.Error(), "process") {
		t.Errorf("copied to one: error is %v, want ErrReplicaLacksKey and which", err)
	}
	if now := currentID(t, first); now != primary {
		t.Errorf("key %d encrypts, want %d", now, primary)
	}
	copyKeyset(t, first, second)
	// The replica reports the key with its next create. One that died does not prevent the promotion.
	if _, err := keyedCreate(t.Context(), replicas[1], "brought"); err != nil {
		t.Fatal(err)
	}
	cluster.Exec(t, databaseOf(t, url), insertDeadReplica)
	promoted, err := operator.PromoteKey(t.Context())
	if err != nil || promoted != added || currentID(t, first) != added {
		t.Fatalf("promoted is %d, want %d, %v", promoted, added, err)
	}
	if _, err := keyedCreate(t.Context(), replicas[0], "after"); err != nil {
		t.Error(err)
	}
	replaysAll(t, replicas, "before", "brought", "after")

	// A replica without the key does not start, and one that gets the old file stops storing.
	if _, err := store.Create(t.Context(), create(t, url), old); !errors.Is(err, store.ErrKeysetUnusable) ||
		!strings.Contains(err.Error(), "copy the newest keyset") {
		t.Errorf("start without the key: error is %v, want ErrKeysetUnusable", err)
	}
	copyKeyset(t, old, second)
	if _, err := keyedCreate(t.Context(), replicas[1], "with the old file"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("with the old file: error is %v, want ErrUnavailable", err)
	}
	if err := replicas[1].Ready(t.Context()); !errors.Is(err, store.ErrKeysetUnusable) {
		t.Errorf("with the old file: Ready is %v, want ErrKeysetUnusable", err)
	}
}

// A key is retired once each live replica has reported that it encrypts with the next one. Replicas with the previous
// file keep working, except those that would encrypt with the retired key.
func TestRetireKeysRequiresPromotionOnAllReplicas(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url, first := cluster.CreateDatabase(t), newKeyset(t)
	second, added := filepath.Join(t.TempDir(), "keyset.json"), filepath.Join(t.TempDir(), "keyset.json")
	copyKeyset(t, first, second)
	replicas := []*store.Store{openStore(t, url, first), openStore(t, url, second)}
	create := func(i int, key string) error {
		_, err := keyedCreate(t.Context(), replicas[i], key)
		return err
	}
	operator := openOperator(t, url, first)
	_, addErr := operator.AddKey(t.Context())
	copyKeyset(t, first, added)
	copyKeyset(t, first, second)
	if err := errors.Join(addErr, create(0, "old"), create(1, "other old")); err != nil {
		t.Fatal(err)
	}
	_, err := operator.PromoteKey(t.Context())
	if err := errors.Join(err, create(0, "promoted"), operator.Reseal(t.Context(), func(int64, int64) {})); err != nil {
		t.Fatal(err)
	}

	// The second replica has the key but does not encrypt with it yet.
	if _, err := operator.RetireKeys(t.Context()); !errors.Is(err, store.ErrReplicaNotPromoted) ||
		!strings.Contains(err.Error(), "process") {
		t.Errorf("not copied: error is %v, want ErrReplicaNotPromoted and which", err)
	}
	if err := create(1, "late"); err != nil {
		t.Error(err)
	}
	copyKeyset(t, first, second)
	if err := create(1, "brought"); err != nil {
		t.Error(err)
	}
	if _, err := operator.RetireKeys(t.Context()); !errors.Is(err, store.ErrKeysInUse) {
		t.Errorf("a late create: error is %v, want ErrKeysInUse", err)
	}
	if err := operator.Reseal(t.Context(), func(int64, int64) {}); err != nil {
		t.Error(err)
	}
	// A dead replica, of a release that reported less, does not count.
	cluster.Exec(t, databaseOf(t, url), insertDeadReplica)
	retired, err := operator.RetireKeys(t.Context())
	if err != nil || len(retired.IDs) != 1 {
		t.Fatalf("retired are %v, %v, want one key", retired.IDs, err)
	}
	if err := errors.Join(create(0, "without"), create(1, "with")); err != nil {
		t.Error(err)
	}
	replaysAll(t, replicas, "old", "other old", "promoted", "late", "brought", "without", "with")

	copyKeyset(t, added, second)
	if err := create(1, "with the previous file"); !errors.Is(err, store.ErrUnavailable) ||
		!strings.Contains(err.Error(), "which was retired; copy the newest keyset") {
		t.Errorf("with the previous file: error is %v, want ErrUnavailable and why", err)
	}
	copyKeyset(t, first, second)
	if err := create(1, "with the newest"); err != nil {
		t.Error(err)
	}
	replaysAll(t, replicas, "old", "other old", "promoted", "late", "brought", "without", "with", "with the newest")
}
