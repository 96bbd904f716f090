package storetest

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"example.com/providerd/store"
)

// testValuesOfABatch stores records of any text and size together, which a database may write differently from a single
// record.
func testValuesOfABatch(t *testing.T, database *store.Store) {
	ctx := t.Context()
	texts := rapid.StringOf(rapid.RuneFrom([]rune("\"\\/<>&{}[],:'%$?\a\b\n\r\t\x01\x1f\x7f\u0085\u2028\u2029é🔑")))
	rapid.Check(t, func(t *rapid.T) {
		requests := rapid.SliceOfN(texts, 2, 24).Draw(t, "texts")
		long := rapid.SliceOfN(rapid.SampledFrom([]int{1, 1, 1, 20_000}), len(requests), len(requests)).Draw(t, "length")
		records := make([]store.Record, len(requests))
		errs := make([]error, len(requests))
		concurrently(len(requests), func(i int) {
			text := strings.Repeat(requests[i], long[i])
			request := store.CreateRequest{Name: text, CreatedBy: text, RequestID: text, RemoteAddress: text}
			settings := store.OAuth2Settings{
				ClientID: uuid.NewString() + requests[i], ClientSecret: store.NewSecret(text), RedirectURIs: text,
				PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{uuid.New()},
			}
			if i%3 == 0 {
				settings = fullOAuth2(settings.ClientID)
			}
			// On a busy machine, so much text may exceed the deadline of a create.
			for tries := 0; tries == 0 || tries < 5 && errors.Is(errs[i], store.ErrUnavailable); tries++ {
				if i%4 == 0 {
					records[i], _, errs[i] = database.CreateWorkspaceDirectoryProvider(ctx, request, fullWorkspaceDirectory())
				} else {
					records[i], _, errs[i] = database.CreateOAuth2Provider(ctx, request, settings)
				}
			}
		})
		if failed := slices.IndexFunc(errs, func(err error) bool { return err != nil }); failed >= 0 {
			t.Fatal(errs[failed])
		}
		for _, record := range records {
			read, err := database.Provider(ctx, record.Common().PK)
			if err != nil || !reflect.DeepEqual(read, record) {
				t.Errorf("read %+v, %v, want %+v", read, err, record)
			}
		}
	})
}
