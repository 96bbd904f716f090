package storetest

import (
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest/processtest"
)

// testTokenExpiry checks that the newest token of a caller counts, unless it is revoked or has a short lifetime.
func testTokenExpiry(t *testing.T, database *store.Store) {
	const day = 24 * time.Hour
	if expiry, err := database.TokenExpiry(t.Context(), day); err != nil || expiry != (store.TokenExpiry{}) {
		t.Errorf("without tokens it is %+v, %v", expiry, err)
	}
	tokens := map[string]store.Token{}
	for name, lengths := range map[string][]time.Duration{"a": {2 * day, 30 * day}, "b": {10 * day}, "c": {3 * day}, "d": {day}} {
		for _, length := range lengths {
			_, token, err := database.CreateToken(t.Context(), store.TokenGrant{
				Name: name, Operations: []string{"one"}, ExpiresIn: length,
			})
			processtest.Must(t, err)
			tokens[name] = token
		}
	}
	processtest.Must(t, database.RevokeToken(t.Context(), tokens["c"].ID))
	for notice, want := range map[time.Duration]time.Time{day: tokens["b"].ExpiresAt.Time, 12 * day: tokens["a"].ExpiresAt.Time, 40 * day: {}} {
		expiry, err := database.TokenExpiry(t.Context(), notice)
		if err != nil || expiry.Callers != 0 || !expiry.First.Equal(want) {
			t.Errorf("with notice %v it is %+v, %v, want %v", notice, expiry, err, want)
		}
	}
}
