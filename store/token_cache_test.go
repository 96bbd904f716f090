package store_test

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store"
)

// Every token is found, but the number in memory is limited.
func TestTokenCacheIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	database := create(t, path)
	const count, limit = 1010, 1000
	texts, rows := make([]string, count), make([]string, count)
	for i := range count {
		texts[i] = store.NewTokenText()
		rows[i] = fmt.Sprintf("('ci', '', x'%x', '[]', '2026-01-01 00:00:00+00:00', '2026-01-02 00:00:00+00:00')",
			sha256.Sum256([]byte(texts[i])))
	}
	execute(t, path, "INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at) VALUES "+
		strings.Join(rows, ", "))
	largest := 0
	for range 2 {
		for _, text := range texts {
			if _, err := database.FindToken(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			largest = max(largest, database.CachedTokens())
		}
	}
	if largest != limit {
		t.Errorf("at most %d tokens are in memory, want %d", largest, limit)
	}
}

// Unknown tokens are not cached, and a revocation empties the cache.
func TestTokenCacheExcludesUnknownAndRevoked(t *testing.T) {
	t.Parallel()
	database := create(t, filepath.Join(t.TempDir(), "test.db"))
	for range 100 {
		if _, err := database.FindToken(t.Context(), store.NewTokenText()); err == nil {
			t.Error("a token that was never created is found")
		}
	}
	if cached := database.CachedTokens(); cached != 0 {
		t.Errorf("%d unknown tokens are in memory", cached)
	}
	text, token, err := database.CreateToken(t.Context(), store.TokenGrant{Name: "ci", Operations: []string{"one"}, ExpiresIn: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []store.TokenState{store.TokenActive, store.TokenRevoked} {
		for range 3 {
			if found, err := database.FindToken(t.Context(), text); err != nil || found.State(time.Now()) != want {
				t.Errorf("found %+v, %v, want it %s", found, err, want)
			}
		}
		if err := database.RevokeToken(t.Context(), token.ID); err != nil {
			t.Fatal(err)
		}
		if cached := database.CachedTokens(); cached != 0 {
			t.Errorf("%d tokens are in memory after a revocation", cached)
		}
	}
}
