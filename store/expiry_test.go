package store_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"example.com/providerd/store"
)

// A caller counts from 14 days before its newest token expires until 14 days after, unless it is renewed or revoked.
func TestExpiryOfOldTokens(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	path := filepath.Join(t.TempDir(), "test.db")
	database := create(t, path)
	for name, left := range map[string]time.Duration{
		"later": 20 * day, "soon": 10 * day, "expired": -10 * day, "abandoned": -20 * day, "renewed": -time.Hour, "revoked": -time.Hour,
	} {
		_, token, err := database.CreateToken(t.Context(), store.TokenGrant{Name: name, Operations: []string{"one"}, ExpiresIn: day})
		if err != nil {
			t.Fatal(err)
		}
		execute(t, path, fmt.Sprintf("UPDATE tokens SET created_at = '2020-01-01 00:00:00+00:00', expires_at = '%s' WHERE id = %d",
			time.Now().Add(left).UTC().Format("2006-01-02 15:04:05.999999-07:00"), token.ID))
		switch name {
		case "renewed":
			_, _, _, err = database.RenewToken(t.Context(), token.ID, 90*day, time.Hour)
		case "revoked":
			_, err = database.RevokeTokens(t.Context(), name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	expiry, err := database.TokenExpiry(t.Context(), 14*day)
	if err != nil || expiry.Callers != 2 || time.Since(expiry.First).Round(time.Hour) != 10*day {
		t.Errorf("it is %+v, %v", expiry, err)
	}
}
