//go:build slow

package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
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

// TestRoundTrip copies everything from SQLite to PostgreSQL and back, then continues to use both copies.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	source := newSQLite(t)
	keyset := filepath.Join(filepath.Dir(source.path), "keyset.json")
	want, last := everything(t, source.path)
	there, back := kinds(t)["PostgreSQL"](t), newSQLite(t)
	from, middle, end := source.use(t), there.open(t), back.open(t)
	first, err := store.Copy(t.Context(), from, middle, keyset, noProgress)
	check(t, err)
	second, err := store.Copy(t.Context(), middle, end, keyset, noProgress)
	check(t, err)
	isEqual := func(a, b store.Content) bool { return a == b || a.Table == "events" && b.Rows == a.Rows+1 }
	if !slices.EqualFunc(first, second, isEqual) {
		t.Errorf("contents are %v in PostgreSQL, and %v back in SQLite", first, second)
	}
	for table, rows := range quoted(t, from) {
		got := slices.DeleteFunc(quoted(t, end)[table], func(row string) bool { return strings.Contains(row, "'database copied'") })
		if !slices.Equal(got, rows) {
			t.Errorf("SQLite has in %s\n%v\nwant\n%v", table, got, rows)
		}
	}
	ids := map[string]bool{}
	for _, db := range []database.Database{from, middle, end} {
		var keyset struct{ DatabaseID []byte }
		check(t, db.Reader().WithContext(t.Context()).Table("keyset").Take(&keyset).Error)
		ids[string(keyset.DatabaseID)] = true
	}
	if len(ids) != 3 {
		t.Errorf("the databases have %d ids, want 3", len(ids))
	}
	check(t, errors.Join(middle.Close(), end.Close()))
	for name, copied := range map[string]place{"there": there, "back": back} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opened, err := store.Create(t.Context(), copied.open(t), keyset)
			check(t, err)
			defer func() { check(t, opened.Close()) }()
			got, copies := stateOf(t, opened), map[string]int{"there": 1, "back": 2}[name]
			before := len(got.events)
			got.events = slices.DeleteFunc(got.events, func(event store.Event) bool {
				return event.Event == store.EventDatabaseCopied
			})
			if !reflect.DeepEqual(got, want) || before-len(got.events) != copies {
				t.Errorf("store has\n%v\nwant\n%v", got, want)
			}
			first, replayed, err := opened.CreateOAuth2Provider(t.Context(), request("full", "key of full"), storetest.FullOAuth2("full ☃"))
			if err != nil || !replayed {
				t.Errorf("a retry gives %v, %t, %v", first, replayed, err)
			}
			_, _, err = opened.CreateOAuth2Provider(t.Context(), request("other", "key of full"), oauth2("x"))
			if !errors.Is(err, store.ErrKeyReused) {
				t.Errorf("a key with another body gives %v", err)
			}
			next, _, err := opened.CreateOAuth2Provider(t.Context(), request("next", ""), oauth2("next"))
			if err != nil || next.PK <= last {
				t.Errorf("the next provider has pk %d, %v; the last one was %d", next.PK, err, last)
			}
			_, token, err := opened.CreateToken(t.Context(), store.TokenGrant{Name: "next", Operations: []string{}, ExpiresIn: time.Hour})
			if err != nil || token.ID <= 2 {
				t.Errorf("the next token has id %d, %v", token.ID, err)
			}
			application, err := opened.CreateApplication(t.Context(), store.Application{Slug: "next"})
			if err != nil || application.ID <= 2 {
				t.Errorf("the next application has id %d, %v", application.ID, err)
			}
			if _, err := opened.RotateKey(t.Context()); err != nil {
				t.Errorf("the next key event: %v", err)
			}
		})
	}
}

// quoted returns all rows of a SQLite database, except for the keyset, as SQL literals, which show the type of each value.
// So every table and column is compared.
func quoted(t *testing.T, db database.Database) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	reader := db.Reader().WithContext(t.Context())
	tables, err := reader.Migrator().GetTables()
	check(t, err)
	for _, table := range tables {
		if slices.Contains([]string{"goose_db_version", "keyset", "sqlite_sequence"}, table) {
			continue
		}
		types, err := reader.Migrator().ColumnTypes(table)
		check(t, err)
		var columns []string
		for _, column := range types {
			columns = append(columns, column.Name())
		}
		var all []string
		check(t, reader.Raw(fmt.Sprintf("SELECT quote(%s) FROM %s ORDER BY %s",
			strings.Join(columns, ") || ' ' || quote("), table, columns[0])).Scan(&all).Error)
		rows[table] = all
	}
	return rows
}

// interrupted is a database whose commit of a load fails, after the statements have run.
type interrupted struct{ database.Database }

func (d interrupted) Load(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return d.Database.Load(ctx, func(tx *gorm.DB) error { return errors.Join(statements(tx), database.ErrUnavailable) })
}

// TestInterruptedCopy expects nothing of a copy that fails at its end, and copies again, while the source changes.
func TestInterruptedCopy(t *testing.T) {
	t.Parallel()
	for kind, newTarget := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			source, keyset := filled(t, 500)
			target := newTarget(t).use(t)
			if _, err := store.Copy(t.Context(), source, interrupted{target}, keyset, noProgress); !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("error is %v", err)
			}
			changed := false
			before, err := store.Copy(t.Context(), source, target, keyset, func(store.CopyStep, int64, int64) {
				if !changed {
					changed = true
					run(t, source, "DELETE FROM providers WHERE pk = 9", "UPDATE tokens SET name = 'other'")
				}
			})
			check(t, err)
			if before[0].Rows != 500 || before[3].Rows != 1 {
				t.Errorf("copied %v", before)
			}
			if _, err := store.Copy(t.Context(), source, target, keyset, noProgress); !errors.Is(err, store.ErrNotEmpty) {
				t.Errorf("copying again gives %v", err)
			}
		})
	}
}

func TestRefusedCopies(t *testing.T) {
	t.Parallel()
	for kind, newTarget := range kinds(t) {
		for name, test := range map[string]struct{ statement, text string }{
			"in use": {"INSERT INTO keyset (pk, version, database_id, secret_keys, digest_key) VALUES (1, @x, @x, @x, @x)", "in use"},
			"a row": {
				"INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at) VALUES ('ci', 'pvd_a', @x, '[]', @at, @at)",
				"rows in tokens",
			},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				source, keyset := filled(t, 10)
				target := newTarget(t).use(t)
				run(t, target, test.statement)
				_, err := store.Copy(t.Context(), source, target, keyset, noProgress)
				if !errors.Is(err, store.ErrNotEmpty) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("error is %v", err)
				}
				var providers int64
				check(t, target.Reader().WithContext(t.Context()).Table("providers").Count(&providers).Error)
				if providers != 0 {
					t.Errorf("the target has %d providers", providers)
				}
			})
		}
	}
}

// TestComparisonFindsDifference changes a table between its copy and the comparison, and copies again.
func TestComparisonFindsDifference(t *testing.T) {
	t.Parallel()
	for kind, newTarget := range kinds(t) {
		for table, damage := range map[string]string{
			"providers":    "UPDATE providers SET secret = @empty WHERE pk = 1",
			"tokens":       "UPDATE tokens SET revoked_at = @at",
			"applications": "UPDATE applications SET provider_pk = NULL WHERE id = 1",
			"backchannels": "UPDATE backchannels SET application_id = 2 WHERE provider_pk = 3",
			"events":       "UPDATE events SET subject = 1",
		} {
			t.Run(kind+"/"+table, func(t *testing.T) {
				t.Parallel()
				source, keyset := filled(t, 20)
				target := &capturing{Database: newTarget(t).use(t)}
				_, err := store.Copy(t.Context(), source, target, keyset, func(step store.CopyStep, done, total int64) {
					if step == store.StepCopy && done == total {
						check(t, runIn(target.tx, damage))
					}
				})
				if !errors.Is(err, store.ErrDiffers) || !strings.Contains(err.Error(), "in table "+table+";") {
					t.Errorf("error is %v", err)
				}
				if _, err := store.Copy(t.Context(), source, target, keyset, noProgress); err != nil {
					t.Errorf("copied again: %v", err)
				}
			})
		}
	}
}

// capturing is a database that keeps the transaction of a load.
type capturing struct {
	database.Database
	tx *gorm.DB
}

func (d *capturing) Load(ctx context.Context, statements func(tx *gorm.DB) error) error {
	return d.Database.Load(ctx, func(tx *gorm.DB) error {
		d.tx = tx
		return statements(tx)
	})
}
