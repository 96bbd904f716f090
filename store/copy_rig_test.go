//go:build slow

package store_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/postgres/postgrestest"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
)

// place is the location of a database.
type place struct {
	// url locates a PostgreSQL database, and path a SQLite database.
	url, path string
}

// open opens or creates the database. The caller closes it.
func (p place) open(t *testing.T) database.Database {
	t.Helper()
	var db database.Database
	var err error
	if p.path != "" {
		db, err = sqlite.Create(t.Context(), p.path, slog.New(slog.DiscardHandler))
	} else {
		var url postgres.URL
		if url, err = postgres.ParseURL(p.url); err == nil {
			db, err = postgres.Create(t.Context(), url, slog.New(slog.DiscardHandler))
		}
	}
	check(t, err)
	return db
}

// use is open, but closes the database when the test ends.
func (p place) use(t *testing.T) database.Database {
	t.Helper()
	db := p.open(t)
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

func newSQLite(t *testing.T) place {
	t.Helper()
	return place{path: filepath.Join(t.TempDir(), "test.db")}
}

// kinds returns functions that return an unused place for a database of each kind.
func kinds(t *testing.T) map[string]func(t *testing.T) place {
	t.Helper()
	cluster := postgrestest.NewCluster(t)
	return map[string]func(t *testing.T) place{
		"SQLite": newSQLite,
		"PostgreSQL": func(t *testing.T) place {
			t.Helper()
			return place{url: cluster.CreateDatabase(t)}
		},
	}
}

// filled returns a SQLite database with count providers, and a few rows in the other tables, and its keyset.
func filled(t *testing.T, count int) (db database.Database, keyset string) {
	t.Helper()
	at := newSQLite(t)
	check(t, storetest.FillSQLite(t.Context(), at.path, count))
	db = at.use(t)
	run(t, db,
		"INSERT INTO applications (slug, name, provider_pk) VALUES ('a', 'A', 1), ('b', 'B', 2), ('c', 'C', NULL)",
		"INSERT INTO backchannels (provider_pk, application_id) VALUES (3, 1), (10, 1)",
		`INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at) VALUES
			('ci', 'pvd_a', @x, '["providers_oauth2_create"]', @at, @at)`)
	return db, filepath.Join(filepath.Dir(at.path), "keyset.json")
}

// run executes statements in one transaction. In them, @x stands for some bytes, @empty for none, and @at for a time.
func run(t *testing.T, db database.Database, statements ...string) {
	t.Helper()
	check(t, db.Write(t.Context(), func(tx *gorm.DB) error {
		for _, statement := range statements {
			if err := runIn(tx, statement); err != nil {
				return err
			}
		}
		return nil
	}))
}

func runIn(tx *gorm.DB, statement string) error {
	var values []any
	if strings.Contains(statement, "@") {
		at := database.TimeOf(time.UnixMicro(1_800_000_000_250_000))
		values = []any{sql.Named("x", []byte("x")), sql.Named("empty", []byte{}), sql.Named("at", at)}
	}
	return tx.Exec(statement, values...).Error
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func noProgress(store.CopyStep, int64, int64) {}

// state is everything that can be read from a store.
type state struct {
	records      []store.Record
	tokens       []store.Token
	applications []store.Application
	events       []store.Event
}

func stateOf(t *testing.T, opened *store.Store) (s state) {
	t.Helper()
	s.records = storetest.Collect(t, opened.Opened(t.Context(), opened.Providers(t.Context(), store.Filter{}, 0)))
	s.events = storetest.Collect(t, opened.Events(t.Context(), store.EventFilter{}, 0))
	s.tokens = storetest.Collect(t, opened.Tokens(t.Context()))
	s.applications = storetest.Collect(t, opened.Applications(t.Context()))
	return s
}

func request(name, key string) store.CreateRequest {
	request := store.CreateRequest{
		Name: name, CreatedBy: "ci", RequestID: "request of " + name, RemoteAddress: "192.0.2.1",
	}
	if key != "" {
		request.IdempotencyKey = &key
	}
	return request
}

func oauth2(clientID string) store.OAuth2Settings {
	return store.OAuth2Settings{
		AuthorizationFlow: uuid.MustParse("3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"), ClientID: clientID,
		PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{},
		ClientType: "confidential", SubMode: "user_id", IssuerMode: "global",
	}
}

// everything creates a database with every kind of row, missing and empty values, and a pk that was generated but not
// used. It returns the contents and the last pk that was assigned, to a provider that is deleted.
func everything(t *testing.T, path string) (state, int64) {
	t.Helper()
	opened, err := storetest.CreateSQLite(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	empty := store.WorkspaceDirectorySettings{
		PropertyMappings: []uuid.UUID{}, PropertyMappingsGroup: []uuid.UUID{}, UserDeleteAction: "delete", GroupDeleteAction: "delete",
	}
	directory := storetest.FullWorkspaceDirectory()
	directory.Scopes = " a\tb "
	for name, settings := range map[string]store.OAuth2Settings{"full": storetest.FullOAuth2("full ☃"), "bare": oauth2("")} {
		_, _, err := opened.CreateOAuth2Provider(t.Context(), request(name, "key of "+name), settings)
		check(t, err)
	}
	for name, settings := range map[string]store.WorkspaceDirectorySettings{"directory": directory, "empty": empty} {
		_, _, err := opened.CreateWorkspaceDirectoryProvider(t.Context(), request(name, ""), settings)
		check(t, err)
	}
	first := int64(1)
	_, err = opened.RotateKey(t.Context())
	check(t, err)
	_, _, err = opened.CreateOAuth2Provider(t.Context(), request("newer", "Key Of full"), oauth2("newer"))
	check(t, err)
	for range 2 {
		_, _, err = opened.CreateToken(t.Context(), store.TokenGrant{
			Name: "ci", Operations: []string{"providers_oauth2_create"}, ExpiresIn: time.Hour,
		})
		check(t, err)
	}
	check(t, opened.RevokeToken(t.Context(), 1))
	for slug, application := range map[string]store.Application{
		"bare":   {},
		"linked": {ProviderPK: &first, Backchannels: []store.Backchannel{{ProviderPK: 2}, {ProviderPK: 4}}},
	} {
		application.Slug, application.Name = slug, "Application"
		_, err := opened.CreateApplication(t.Context(), application)
		check(t, err)
	}
	planned, err := opened.Provider(t.Context(), 3)
	check(t, err)
	check(t, opened.ChangeProviders(t.Context(), []store.Change{
		{Planned: planned, Requested: planned, Fields: []string{"name", "scopes"}},
	}))
	gone, _, err := opened.CreateOAuth2Provider(t.Context(), request("gone", ""), oauth2("gone"))
	check(t, err)
	check(t, opened.DeleteProviders(t.Context(), []int64{gone.PK}))
	_, _, err = opened.CreateOAuth2Provider(t.Context(), request("taken", ""), oauth2("newer"))
	if !errors.Is(err, store.ErrClientIDTaken) {
		t.Fatal(err)
	}
	s := stateOf(t, opened)
	check(t, opened.Close())
	return s, gone.PK
}
