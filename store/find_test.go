//go:build slow

package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// BenchmarkFind measures what a search for unique values costs: validations, which consist of it, and creates with and
// without a key.
func BenchmarkFind(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) {
		opened, err := storetest.CreateSQLite(b.Context(), filepath.Join(b.TempDir(), "test.db"), "")
		benchmarkFind(b, processtest.Closing(b, opened, err))
	})
	b.Run("PostgreSQL", func(b *testing.B) {
		url := postgrestest.NewCluster(b).CreateDatabase(b)
		opened, err := storetest.CreatePostgres(b.Context(), url, filepath.Join(b.TempDir(), "keyset.json"))
		benchmarkFind(b, processtest.Closing(b, opened, err))
	})
}

func benchmarkFind(b *testing.B, opened *store.Store) {
	b.Helper()
	const stored = 10_000
	number := 0
	create := func(ctx context.Context, key *string, validateOnly bool) {
		number++
		request := store.CreateRequest{
			Name: "a", CreatedBy: "caller", RequestID: fmt.Sprint(number), IdempotencyKey: key, ValidateOnly: validateOnly,
		}
		_, _, err := opened.Providers.CreateOAuth2(ctx, request, storetest.FullOAuth2(fmt.Sprint(number)))
		processtest.Must(b, err)
	}
	for number < stored {
		create(b.Context(), new(fmt.Sprint(number)), false)
	}
	for _, hasKey := range []bool{false, true} {
		for _, validateOnly := range []bool{false, true} {
			b.Run(fmt.Sprintf("hasKey=%v/validateOnly=%v", hasKey, validateOnly), func(b *testing.B) {
				// A request has a context that can end.
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				b.ReportAllocs()
				for b.Loop() {
					var key *string
					if hasKey {
						key = new(fmt.Sprint("key", number))
					}
					create(ctx, key, validateOnly)
				}
			})
		}
	}
}
