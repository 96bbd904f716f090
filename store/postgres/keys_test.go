//go:build slow

package postgres_test

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// openOperator opens a store as commands do.
func openOperator(t *testing.T, url, keyset string) *store.Store {
	t.Helper()
	database, err := postgres.Open(t.Context(), parse(t, url), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := store.Open(t.Context(), database, keyset)
	return processtest.Closing(t, opened, err)
}

func rotate(t *testing.T, operator *store.Store) (key uint32) {
	t.Helper()
	key, err := operator.RotateKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func silent(int64, int64) {}

// keyUses returns the number of secrets that each data key has sealed.
func keyUses(t *testing.T, opened *store.Store) map[uint32]int64 {
	t.Helper()
	keys, err := opened.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	uses := map[uint32]int64{}
	for _, key := range keys {
		if key.Secrets != nil {
			uses[key.ID] = *key.Secrets
		}
	}
	return uses
}

// createEach creates a provider with each of the keys.
func createEach(t *testing.T, opened *store.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if replayed, err := keyedCreate(t.Context(), opened, key); err != nil || replayed {
			t.Errorf("%s: replayed is %v, %v", key, replayed, err)
		}
	}
}

// readSecrets returns the names of all providers. It fails the test if a secret cannot be decrypted or is another one's.
func readSecrets(t *testing.T, opened *store.Store) (names []string) {
	t.Helper()
	for _, record := range storetest.Collect(t, opened.Opened(t.Context(), opened.Providers(t.Context(), store.Filter{}, 0))) {
		provider := record.(store.OAuth2Provider)
		if secret := provider.ClientSecret.Reveal(); secret != "secret of "+provider.Name {
			t.Errorf("the secret of %s is %q", provider.Name, secret)
		}
		names = append(names, provider.Name)
	}
	return names
}

func expectSecrets(t *testing.T, opened *store.Store, want ...string) {
	t.Helper()
	if names := readSecrets(t, opened); !slices.Equal(names, want) {
		t.Errorf("providers are %q, want %q", names, want)
	}
}

// While another program reads the table of keys, as pg_dump does, a reseal gives up, and creates wait for it at most
// until then.
func TestResealDuringDump(t *testing.T) {
	t.Parallel()
	url, keyset := postgrestest.NewCluster(t).CreateDatabase(t), newKeyset(t)
	replica, operator, watching := openStore(t, url, keyset), openOperator(t, url, keyset), create(t, url)
	createEach(t, replica, "before")
	rotate(t, operator)
	endDump := begin(t, url, "LOCK TABLE keyset IN ACCESS SHARE MODE")
	begun, resealed := time.Now(), make(chan error, 1)
	go func() {
		_, err := operator.Reseal(t.Context(), silent)
		resealed <- err
	}()
	processtest.WaitUntil(t, "the reseal waits", func() bool { return isBlocked(t, watching, "%LOCK TABLE keyset%") })
	createEach(t, replica, "meanwhile")
	if err := <-resealed; !errors.Is(err, store.ErrKeysetInUse) {
		t.Errorf("error is %v, want ErrKeysetInUse", err)
	}
	if took := time.Since(begun).Round(time.Millisecond); took < 500*time.Millisecond || took > 3*time.Second {
		t.Errorf("the reseal gave up after %v, want about half a second", took)
	}
	endDump()
	if removed, err := operator.Reseal(t.Context(), silent); err != nil || removed != 1 {
		t.Errorf("%d keys are removed, want 1, %v", removed, err)
	}
	expectSecrets(t, replica, "before", "meanwhile")
}
