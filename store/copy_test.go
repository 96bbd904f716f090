//go:build slow

package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/storetest"
)

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
