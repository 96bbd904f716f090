// Package storetest is the test suite that every database must pass. Tests of what is specific to one database are in
// the package of that database.
//
// Start with Run, which lists the tests; the test of a database opens it and calls Run.
package storetest

import (
	"iter"
	"reflect"
	"sync"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/store"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest/processtest"
)

// Opener opens another store over the same database and keyset file. The store is closed when the test ends.
type Opener func(t *testing.T) *store.Store

// Run tests a database, with one store and with two. Each call of newDatabase must create an empty, migrated database.
func Run(t *testing.T, newDatabase func(t *testing.T) Opener) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, database *store.Store){
		"providers are stored as given":       testProvidersAreStoredAsGiven,
		"a batch stores all values as given":  testValuesOfABatch,
		"a value that is refused fails alone": testRefusedValues,
		"a refused row fails alone":           testFailingRows,
		"creates follow the model":            testCreates,
		"events are read during creates":      testEventsDuringCreates,
		"the end of the log is an event":      testEndOfLog,
		"the newest token of a caller counts": testTokenExpiry,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newDatabase(t)(t))
		})
	}
	for name, test := range map[string]func(t *testing.T, first, second *store.Store){
		"creates of two stores follow the model":    testCreatesOfTwoStores,
		"two stores commit crossed batches":         testCrossedBatches,
		"two stores create one first token":         testFirstTokenOfTwoStores,
		"two stores link applications":              testConcurrentApplications,
		"one store creates while the other deletes": testCreatesDuringDeletes,
		"one store creates while the other updates": testUpdatesDuringCreates,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := newDatabase(t)
			test(t, open(t), open(t))
		})
	}
}

func creation(name string) store.CreateRequest {
	return store.CreateRequest{Name: name, CreatedBy: "caller", RequestID: "request"}
}

// keyed returns a creation with an idempotency key.
func keyed(key, name string) store.CreateRequest {
	return store.CreateRequest{Name: name, CreatedBy: "caller", RequestID: "request", IdempotencyKey: &key}
}

// fill returns settings without a zero value in fields of text and booleans, so that a new field needs no line below.
func fill[Settings any](settings Settings) Settings {
	for _, value := range reflect.ValueOf(&settings).Elem().Fields() {
		switch {
		case value.Kind() == reflect.String && value.IsZero():
			value.SetString("full")
		case value.Kind() == reflect.Bool:
			value.SetBool(true)
		}
	}
	return settings
}

// FullOAuth2 returns settings with a value other than the zero value in every field.
func FullOAuth2(clientID string) records.OAuth2Settings {
	return fill(records.OAuth2Settings{
		AuthenticationFlow:     new(uuid.UUID{1}),
		AuthorizationFlow:      uuid.UUID{2},
		PropertyMappings:       []uuid.UUID{{3}, {4}, {3}},
		ClientType:             "confidential",
		ClientID:               clientID,
		ClientSecret:           seal.NewSecret("sécret 🔑"),
		AccessCodeValidity:     "minutes=1",
		AccessTokenValidity:    "hours=1",
		RefreshTokenValidity:   "days=30",
		IncludeClaimsInIDToken: true,
		SigningKey:             new(uuid.UUID{5}),
		RedirectURIs:           "https://a.example.com/\r\nhttps://b.example.com/\n",
		SubMode:                "user_uuid",
		IssuerMode:             "global",
		JWKSSources:            []uuid.UUID{{6}},
	})
}

// FullWorkspaceDirectory returns settings with a value other than the zero value in every field.
func FullWorkspaceDirectory() records.WorkspaceDirectorySettings {
	return fill(records.WorkspaceDirectorySettings{
		PropertyMappings:           []uuid.UUID{{1}},
		PropertyMappingsGroup:      []uuid.UUID{{2}, {3}},
		DelegatedSubject:           "admin@example.com",
		Credentials:                seal.NewSecret(`{"a":9007199254740993,"b":1.10,"c":{"d":[null]}}`),
		Scopes:                     "a b",
		ExcludeUsersServiceAccount: true,
		FilterGroup:                new(uuid.UUID{4}),
		UserDeleteAction:           "suspend",
		GroupDeleteAction:          "delete",
		DefaultGroupEmailDomain:    "example.com",
	})
}

func createOAuth2(t *testing.T, database *store.Store, clientID string) records.OAuth2Provider {
	t.Helper()
	record, _, err := database.Providers.CreateOAuth2(t.Context(), creation("oauth2"), FullOAuth2(clientID))
	processtest.Must(t, err)
	return record
}

// concurrently calls work for each number below count, up to 256 at a time, which is the largest batch.
func concurrently(count int, work func(i int)) {
	var group sync.WaitGroup
	free := make(chan struct{}, 256)
	for i := range count {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			work(i)
		})
	}
	group.Wait()
}

func stored(t *testing.T, database *store.Store) []records.Record {
	t.Helper()
	return Collect(t, database.Providers.List(t.Context(), store.Filter{}, 0))
}

// Names returns the names of all providers, each of which must be readable.
func Names(t *testing.T, database *store.Store) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, record := range Collect(t, database.Providers.Opened(t.Context(), database.Providers.List(t.Context(), store.Filter{}, 0))) {
		names[record.Common().Name] = true
	}
	return names
}

// Collect returns the elements of a sequence, and fails the test on an error.
func Collect[T any](t *testing.T, sequence iter.Seq2[T, error]) []T {
	t.Helper()
	var all []T
	for value, err := range sequence {
		processtest.Must(t, err)
		all = append(all, value)
	}
	return all
}
