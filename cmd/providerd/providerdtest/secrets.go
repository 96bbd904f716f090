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

// StoreSecrets creates a database with as many providers as rows. The secret of each is "secret" and its number.
func StoreSecrets(t *testing.T, dir string, rows int) {
	t.Helper()
	database := openData(t, dir, storetest.CreateSQLite)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(256)
	for i := range rows {
		group.Go(func() error {
			_, _, err := database.CreateOAuth2Provider(ctx, store.CreateRequest{Name: fmt.Sprintf("old %d", i)},
				store.OAuth2Settings{
					ClientID: fmt.Sprint(i), ClientSecret: store.NewSecret(fmt.Sprintf("secret %d", i)),
					PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{},
					ClientType: "confidential", SubMode: "hashed_user_id", IssuerMode: "per_provider",
					AccessCodeValidity: "minutes=1", AccessTokenValidity: "hours=1", RefreshTokenValidity: "days=30",
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

// CheckSecrets checks what StoreSecrets stored.
func CheckSecrets(t *testing.T, dir string, rows int) {
	t.Helper()
	found := 0
	for _, record := range Stored(t, dir) {
		number, old := strings.CutPrefix(record.Name, "old ")
		if !old {
			continue
		}
		found++
		if record.Secret != "secret "+number {
			t.Errorf("provider %d, number %s, has the secret %q", record.PK, number, record.Secret)
		}
	}
	if found != rows {
		t.Errorf("found %d old providers, want %d", found, rows)
	}
	database := openData(t, dir, storetest.OpenSQLite)
	defer func() { _ = database.Close() }()
	if err := database.Reseal(t.Context(), func(_, total int64) {
		if total != 0 {
			t.Errorf("%d secrets are sealed with an old key", total)
		}
	}); err != nil {
		t.Error(err)
	}
}
