//go:build slow

package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store/database"
	"example.com/providerd/store/transfer"
)

// tracked is a database that replaces one of its changes with another function, and counts inserted provider rows.
type tracked struct {
	database.Movable
	changes int
	// at is the number of the change that replace replaces; 0 for none.
	at       int
	replace  func(run func() error) error
	inserted int
}

func (d *tracked) Write(ctx context.Context, statements func(tx *gorm.DB) error) error {
	d.changes++
	change := func() error { return d.Movable.Write(ctx, statements) }
	if d.changes == d.at {
		return d.replace(change)
	}
	return change()
}

func (d *tracked) InsertAll(tx *gorm.DB, table string, columns []string, rows [][]any) error {
	if table == "providers" {
		d.inserted += len(rows)
	}
	return d.Movable.InsertAll(tx, table, columns, rows)
}

// TestInterruptedCopy interrupts a copy at each of its changes, before or after it is stored, changes the source, and
// copies again.
func TestInterruptedCopy(t *testing.T) {
	t.Parallel()
	const providers = transfer.PageRows + 300
	meanwhile := [][]string{
		nil,
		{"UPDATE providers SET secret = @x WHERE pk IN (1, 3999, 4299)"},
		{
			"DELETE FROM providers WHERE pk IN (5, 3501, 4299)",
			"DELETE FROM providers WHERE pk > 4200 AND kind <> 'oauth2'",
		},
		{
			"DELETE FROM backchannels", "UPDATE applications SET provider_pk = NULL", "UPDATE applications SET provider_pk = 1 WHERE id = 2",
			"UPDATE tokens SET revoked_at = @at", "INSERT INTO applications (slug, name) VALUES ('d', 'D')",
		},
	}
	changeCount, origin := 0, filledPlace(t, providers)
	for kind, newTarget := range kinds(t) {
		complete := &tracked{Movable: newTarget(t).use(t)}
		if _, err := transfer.Copy(t.Context(), origin.copied(t).use(t), complete, sameKeyset, nothing, noProgress); err != nil {
			t.Fatal(err)
		}
		if changeCount = complete.changes; changeCount < 8 {
			t.Fatalf("a copy makes %d changes, want at least 8", changeCount)
		}
		for point := range 2 * changeCount {
			changes := meanwhile[point%len(meanwhile)]
			t.Run(fmt.Sprintf("%s/change %d/%d", kind, point/2+1, point%2), func(t *testing.T) {
				t.Parallel()
				source := origin.copied(t).use(t)
				target := &tracked{Movable: newTarget(t).use(t), at: point/2 + 1}
				target.replace = func(run func() error) error {
					if point%2 == 0 {
						return database.ErrUnavailable
					}
					return errors.Join(run(), database.ErrOutcomeUnknown)
				}
				if _, err := transfer.Copy(t.Context(), source, target, sameKeyset, nothing, noProgress); err == nil {
					t.Fatal("the copy was not interrupted")
				}
				run(t, source, changes...)
				copied, err := transfer.Copy(t.Context(), source, target, sameKeyset, nothing, noProgress)
				if point == 2*changeCount-1 {
					// The last change was stored.
					if !errors.Is(err, transfer.ErrNotEmpty) {
						t.Fatalf("copying again into a complete copy gives %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if want := contents(t, source); !slices.Equal(copied, want) || !slices.Equal(contents(t, target), want) {
					t.Errorf("the copy has %v, the source %v, and Copy returned %v", contents(t, target), want, copied)
				}
				if changes == nil && target.inserted != providers {
					t.Errorf("%d rows were sent, want %d", target.inserted, providers)
				}
			})
		}
	}
}

func TestCopyOfChangingSource(t *testing.T) {
	t.Parallel()
	for kind, newPlace := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			source := newPlace(t).use(t)
			if _, err := transfer.Copy(t.Context(), filled(t, 20), source, sameKeyset, nothing, noProgress); err != nil {
				t.Fatal(err)
			}
			before := contents(t, source)
			target := newSQLite(t).use(t)
			changed := false
			copied, err := transfer.Copy(t.Context(), source, target, sameKeyset, nothing, func(transfer.Step, int64, int64) {
				if !changed {
					changed = true
					run(t, source, "DELETE FROM providers WHERE pk = 9", "UPDATE tokens SET name = 'other'")
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(copied, before) || !slices.Equal(contents(t, target), before) {
				t.Errorf("the copy has %v, the source had %v", contents(t, target), before)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const token = "INSERT INTO tokens (name, prefix, digest, operations, created_at, expires_at) VALUES" +
		" ('ci', 'pvd_a', @x, '[]', @at, @at)"
	const keyset = "INSERT INTO keyset (pk, version, database_id, secret_keys, digest_key) VALUES "
	for kind, newTarget := range kinds(t) {
		for name, test := range map[string]struct {
			statement string
			want      error
			text      string
		}{
			"in use":       {keyset + "(1, @x, @x, @x, @x)", transfer.ErrNotEmpty, "in use"},
			"a row":        {token, transfer.ErrNotEmpty, "rows in tokens"},
			"another copy": {keyset + "(1, @empty, @x, @x, @x)", transfer.ErrNotEmpty, "of another database"},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				target := newTarget(t).use(t)
				run(t, target, test.statement)
				before := contents(t, target)
				_, err := transfer.Copy(t.Context(), filled(t, 10), target, sameKeyset, nothing, noProgress)
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("error is %v", err)
				}
				if after := contents(t, target); !slices.Equal(after, before) {
					t.Errorf("target has %v, want %v as before", after, before)
				}
				if name != "another copy" {
					return
				}
				if _, err := transfer.Copy(t.Context(), target, newSQLite(t).use(t), sameKeyset, nothing, noProgress); !errors.Is(err, database.ErrCopyIncomplete) {
					t.Errorf("copying an unfinished copy gives %v", err)
				}
			})
		}
	}
}

// TestConcurrentCopies finishes another copy while one is in progress. From then on, the database may be in use.
func TestConcurrentCopies(t *testing.T) {
	t.Parallel()
	for kind, newTarget := range kinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			source := filled(t, 20)
			target := &tracked{Movable: newTarget(t).use(t), at: 3}
			target.replace = func(change func() error) error {
				if _, err := transfer.Copy(t.Context(), source, target.Movable, sameKeyset, nothing, noProgress); err != nil {
					t.Error(err)
				}
				run(t, target, "UPDATE providers SET name = 'in use'")
				return change()
			}
			_, err := transfer.Copy(t.Context(), source, target, sameKeyset, nothing, noProgress)
			if err == nil || !strings.Contains(err.Error(), "another program has finished the copy") {
				t.Errorf("error is %v", err)
			}
			var names []string
			if err := target.Reader().WithContext(t.Context()).Raw("SELECT DISTINCT name FROM providers").Scan(&names).Error; err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(names, []string{"in use"}) {
				t.Errorf("providers are named %v", names)
			}
		})
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
				source, target := filled(t, 20), newTarget(t).use(t)
				_, err := transfer.Copy(t.Context(), source, target, sameKeyset, nothing, func(step transfer.Step, done, _ int64) {
					if step == transfer.StepCompare && done == 0 {
						run(t, target, damage)
					}
				})
				if !errors.Is(err, transfer.ErrDiffers) || !strings.Contains(err.Error(), "in table "+table+";") {
					t.Errorf("error is %v", err)
				}
				if _, err := transfer.Copy(t.Context(), source, target, sameKeyset, nothing, noProgress); err != nil {
					t.Errorf("copied again: %v", err)
				}
			})
		}
	}
}

// TestEveryColumnIsCopied finds tables and columns of a schema that are not copied. TestRoundTrip uses copied keysets.
func TestEveryColumnIsCopied(t *testing.T) {
	t.Parallel()
	excluded := []string{"goose_db_version", "goose_lock", "keyset", "schema_support", "sqlite_sequence"}
	for kind, newPlace := range kinds(t) {
		copied := transfer.Columns()
		migrator := newPlace(t).use(t).Reader().WithContext(t.Context()).Migrator()
		tables, err := migrator.GetTables()
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			if slices.Contains(excluded, table) {
				continue
			}
			types, err := migrator.ColumnTypes(table)
			if err != nil {
				t.Fatal(err)
			}
			var columns []string
			for _, column := range types {
				columns = append(columns, column.Name())
			}
			if !slices.Equal(columns, copied[table]) {
				t.Errorf("%s: %s has columns %v, but %v are copied", kind, table, columns, copied[table])
			}
			delete(copied, table)
		}
		if len(copied) > 0 {
			t.Errorf("%s lacks the tables %v", kind, copied)
		}
	}
}
