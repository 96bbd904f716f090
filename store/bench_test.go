package store_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// BenchmarkCreate measures durable creates by concurrent callers, each of which waits for its outcome.
func BenchmarkCreate(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			database, err := storetest.CreateSQLite(b.Context(), filepath.Join(b.TempDir(), "bench.db"), "")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = database.Close() }()
			var number atomic.Int64
			b.SetParallelism(callers / 2)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, _, err := database.CreateOAuth2Provider(b.Context(),
						store.CreateRequest{Name: "bench", CreatedBy: "bench", RequestID: fmt.Sprint(number.Add(1))},
						store.OAuth2Settings{
							ClientID: store.RandomAlphanumeric(40), ClientSecret: store.NewSecret(store.RandomAlphanumeric(128)),
							PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{}, RedirectURIs: "https://example.com/",
						})
					if err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
