package storetest

import (
	"errors"
	"fmt"
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
			settings := FullOAuth2(uuid.NewString() + requests[i])
			if i%3 > 0 {
				settings.ClientSecret, settings.RedirectURIs = store.NewSecret(text), text
				settings.AuthenticationFlow, settings.SigningKey, settings.PropertyMappings = nil, nil, []uuid.UUID{}
			}
			// On a busy machine, so much text may exceed the deadline of a create.
			for tries := 0; tries == 0 || tries < 5 && errors.Is(errs[i], store.ErrUnavailable); tries++ {
				if i%4 == 0 {
					records[i], _, errs[i] = database.CreateWorkspaceDirectoryProvider(ctx, request, FullWorkspaceDirectory())
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

// testRefusedValues creates 256 providers simultaneously, one of which has a value that a database may refuse. The
// database stores that one as given or refuses it, and stores the others. A refused create does not use up its key.
func testRefusedValues(t *testing.T, database *store.Store) {
	for what, set := range map[string]func(settings *store.OAuth2Settings){
		"U+0000":                func(settings *store.OAuth2Settings) { settings.ClientID += "a\x00b" },
		"invalid UTF-8":         func(settings *store.OAuth2Settings) { settings.ClientID += "a\xffb" },
		"too long for an index": func(settings *store.OAuth2Settings) { settings.ClientID += store.RandomAlphanumeric(20_000) },
		"not of an enumeration": func(settings *store.OAuth2Settings) { settings.SubMode = "other" },
	} {
		for round := 1; createAround(t, database, fmt.Sprint(what, round, "/"), set) == 1; round++ {
			t.Logf("%s: the create was alone; trying again", what)
		}
	}
}

// createAround creates a provider with a value among 255 others with a prefix, and returns the size of its batch.
func createAround(
	t *testing.T, database *store.Store, prefix string, set func(settings *store.OAuth2Settings),
) (batchSize int) {
	t.Helper()
	const count, refused = 256, 100
	creates, timing := make([]attempt, count), store.Timing{}
	for i := range creates {
		settings := FullOAuth2(fmt.Sprint(prefix, i))
		creates[i] = attempt{request: keyed(fmt.Sprint(prefix, i), "x"), oauth2: &settings}
	}
	creates[refused].request.Timing = &timing
	set(creates[refused].oauth2)
	concurrently(count, func(i int) { creates[i].create(t.Context(), database) })
	for i, c := range creates {
		if c.err != nil && (i != refused || errors.Is(c.err, store.ErrUnavailable) || errors.Is(c.err, store.ErrOutcomeUnknown)) {
			t.Errorf("%s: create %d: %v", prefix, i, c.err)
		} else if c.err == nil {
			expectRecord(t, database, c.record)
		}
	}
	retry, isStored := creates[refused], creates[refused].err == nil
	retry.request.Timing = nil
	if !isStored {
		*retry.oauth2 = FullOAuth2(prefix)
	}
	_, replayed, err := database.CreateOAuth2Provider(t.Context(), retry.request, *retry.oauth2)
	if err != nil || replayed != isStored {
		t.Errorf("%s: a retry is replayed: %v, want %v, %v", prefix, replayed, isStored, err)
	}
	return timing.BatchSize
}

// keyed returns a creation with an idempotency key.
func keyed(key, name string) store.CreateRequest {
	return store.CreateRequest{Name: name, CreatedBy: "caller", RequestID: "request", IdempotencyKey: &key}
}

// testFailingRows runs creates that fail and creates that succeed in the same batches.
func testFailingRows(t *testing.T, database *store.Store) {
	createOAuth2(t, database, "taken")
	const count = 300
	concurrently(count, func(i int) {
		clientID := fmt.Sprint(i)
		if i%3 == 0 {
			clientID = "taken"
		}
		_, _, err := database.CreateOAuth2Provider(t.Context(), creation("x"), FullOAuth2(clientID))
		if taken := errors.Is(err, store.ErrClientIDTaken); taken != (i%3 == 0) || !taken && err != nil {
			t.Errorf("create %d: %v", i, err)
		}
	})
	if records := stored(t, database); len(records) != 1+count*2/3 {
		t.Errorf("%d records are stored, want %d", len(records), 1+count*2/3)
	}
}
