package providerdtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// StoreSecrets makes a database with this many providers, whose secrets are "secret" and their number.
func StoreSecrets(t *testing.T, folder string, rows int) {
	t.Helper()
	database := openData(t, folder, storetest.CreateSQLite)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(256)
	for i := range rows {
		group.Go(func() error {
			_, _, err := database.CreateOAuth2Provider(ctx, store.CreateRequest{Name: fmt.Sprintf("old %d", i)},
				store.OAuth2Settings{
					ClientID: fmt.Sprint(i), ClientSecret: store.NewSecret(fmt.Sprintf("secret %d", i)),
					PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{},
				})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := database.Close(); err != nil {
		t.Fatal(err)
	}
}

// CheckSecrets reads what StoreSecrets stored.
func CheckSecrets(t *testing.T, folder string, rows int) {
	t.Helper()
	found := 0
	for _, one := range Stored(t, folder) {
		number, old := strings.CutPrefix(one.Name, "old ")
		if !old {
			continue
		}
		found++
		if one.Secret != "secret "+number {
			t.Errorf("provider %d, which is number %s, has the secret %q", one.PK, number, one.Secret)
		}
	}
	if found != rows {
		t.Errorf("%d old providers are found, want %d", found, rows)
	}
	database := openData(t, folder, storetest.OpenSQLite)
	defer func() { _ = database.Close() }()
	if err := database.Reseal(t.Context(), func(_, total int64) {
		if total != 0 {
			t.Errorf("%d secrets are sealed with an old key", total)
		}
	}); err != nil {
		t.Error(err)
	}
}
