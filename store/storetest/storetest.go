// Package storetest is the test suite that every database must pass. Tests of what is specific to one database are in
// the package of that database.
//
// Start with Run, which lists the tests; the test of a database opens it and calls Run.
package storetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/link"
	"example.com/providerd/store/records"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
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

// CreateSQLite opens a store over the SQLite database at path, and creates the database if there is none. The keyset
// file is at keyset, or is keyset.json next to the database if that is "". It returns the errors of sqlite.Create and
// store.Create.
func CreateSQLite(ctx context.Context, path, keyset string) (*store.Store, error) {
	database, err := sqlite.Create(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Create(ctx, database, keysetPath(database, keyset))
}

// OpenSQLite is CreateSQLite for an existing database. It returns the errors of sqlite.Open and store.Open.
func OpenSQLite(ctx context.Context, path, keyset string) (*store.Store, error) {
	database, err := sqlite.Open(ctx, path, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, database, keysetPath(database, keyset))
}

func keysetPath(database *sqlite.Database, path string) string {
	return cmp.Or(path, filepath.Join(database.Dir(), "keyset.json"))
}

// Execute runs statements in the SQLite database at path, as another program would.
func Execute(t testing.TB, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite3", path)
	processtest.Must(t, err)
	_, err = db.ExecContext(t.Context(), statements)
	processtest.Must(t, err, db.Close())
}

// CreatePostgres opens a store over the PostgreSQL database at a URL, as a replica does. It creates the keyset file if
// there is none. It returns the errors of postgres.Create and store.Create.
func CreatePostgres(ctx context.Context, url, keyset string) (*store.Store, error) {
	parsed, err := link.ParseURL(url)
	if err != nil {
		return nil, err
	}
	if _, err := seal.ReadOrCreateMasterKeys(keyset); err != nil {
		return nil, err
	}
	database, err := postgres.Create(ctx, parsed, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Create(ctx, database, keyset)
}

// FillSQLite creates a SQLite database at path, with a keyset next to it and count providers, faster than creates
// could. Provider N has the name "old N" and the secret "secret N". Every tenth is a directory instead, and every
// second has an idempotency key.
func FillSQLite(t testing.TB, path string, count int) {
	t.Helper()
	db, err := sqlite.Create(t.Context(), path, slog.New(slog.DiscardHandler))
	processtest.Must(t, err)
	opened, err := store.Create(t.Context(), db, keysetPath(db, ""))
	processtest.Must(t, err)
	master, err := seal.ReadMasterKeys(keysetPath(db, ""))
	var keyset struct {
		Version, DatabaseID []byte
		seal.Wrapped        `gorm:"embedded"`
	}
	processtest.Must(t, err, db.Reader().WithContext(t.Context()).Table("keyset").Take(&keyset).Error)
	keys, err := keyset.Open(master, keyset.DatabaseID)
	processtest.Must(t, err)
	const maxBatch = 256
	for last := 0; last < count; {
		// The columns of both kinds come first, then those of one.
		rows := database.Insertion{Table: "providers", KeysetVersion: keyset.Version, Columns: strings.Fields(`uid kind name
			created_at created_by request_id remote_address idempotency_key secret generated property_mappings
			authorization_flow client_type client_id access_code_validity access_token_validity refresh_token_validity
			include_claims_in_id_token signing_key redirect_uris sub_mode issuer_mode jwks_sources
			property_mappings_group delegated_subject scopes exclude_users_service_account user_delete_action
			group_delete_action default_group_email_domain`)}
		for ; len(rows.Rows) < maxBatch && last < count; last++ {
			rows.Rows = append(rows.Rows, filledRow(t, keys, last+1))
		}
		_, err := db.Insert(t.Context(), rows)
		processtest.Must(t, err)
	}
	processtest.Must(t, opened.Close())
}

func filledRow(t testing.TB, keys *seal.Keys, pk int) []any {
	kind, name, secret := "oauth2", "old", fmt.Sprint("secret ", pk)
	if pk%10 == 0 {
		kind, name, secret = "workspace_directory", "directory", `{"key":"example"}`
	}
	uid := uuid.Must(uuid.NewV7())
	sealed, err := keys.Seal(seal.NewSecret(secret), seal.Place{Row: uid, Value: "providers.secret", Kind: kind})
	processtest.Must(t, err)
	var key any
	if pk%2 == 0 {
		key = rand.Text()
	}
	row := []any{
		uid, kind, fmt.Sprint(name, " ", pk), time.Now().UTC(), "ci", rand.Text(), "192.0.2.1", key, sealed, int64(0),
		`["` + uuid.NewString() + `","` + uuid.NewString() + `"]`,
	}
	if kind == "workspace_directory" {
		row = append(row, make([]any, 12)...)
		return append(row, "[]", "admin@example.com", "", false, "do_nothing", "suspend", "example.com")
	}
	// In capitals, one in 30 million would contain SECRET, for which there is advice.
	clientID := strings.ToLower(rand.Text() + rand.Text()[:14])
	row = append(row, uuid.New(), "confidential", clientID, "minutes=1", "hours=1", "days=30", true, uuid.New(),
		"https://example.com/callback\nhttps://www.example.com/callback", "hashed_user_id", "per_provider", "[]")
	return append(row, make([]any, 7)...)
}
