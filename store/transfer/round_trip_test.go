package transfer_test

import (
	"errors"
	"fmt"
	"maps"
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
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/transfer"
)

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

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
	isEqual := func(a, b transfer.Content) bool { return a == b || a.Table == "events" && b.Rows == a.Rows+1 }
	if !slices.EqualFunc(first, second, isEqual) {
		t.Errorf("contents are %v in PostgreSQL, and %v back in SQLite", first, second)
	}
	got := quoted(t, end)
	got["events"] = slices.DeleteFunc(got["events"], func(row string) bool { return strings.Contains(row, "'database copied'") })
	if want := quoted(t, from); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("SQLite has\n%v\nwant\n%v", got, want)
	}
	ids := map[string]bool{}
	for _, db := range []database.Movable{from, middle, end} {
		var keyset transfer.Keyset
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

// quoted returns all rows of a SQLite database as SQL literals, which show the type of each value.
func quoted(t *testing.T, db database.Movable) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	err := db.Snapshot(t.Context(), func(tx *gorm.DB) error {
		for table, columns := range transfer.Columns() {
			var all []string
			err := tx.Raw(fmt.Sprintf("SELECT quote(%s) FROM %s ORDER BY %s",
				strings.Join(columns, ") || ' ' || quote("), table, columns[0])).Scan(&all).Error
			if err != nil {
				return err
			}
			rows[table] = all
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
