package store_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// Records with the secret of another record, and those with a value that cannot be read, are yielded as errors in order, also at the
// edges of pages, and hide no other record.
func TestDamagedRecordsAreYieldedInOrder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	const count = 1200
	storetest.FillSQLite(t, path, count)
	const damaged = "pk IN (1, 2, 499, 500, 501, 1000, 1001, 1199, 1200)"
	storetest.Execute(t, path, "UPDATE providers SET secret = (SELECT secret FROM providers WHERE pk = 3) WHERE "+damaged)
	storetest.Execute(t, path, "UPDATE providers SET property_mappings = 'no list' WHERE pk IN (2, 500)")
	database := create(t, path)
	var got []string
	last := int64(0)
	for record, err := range database.Opened(t.Context(), database.Providers(t.Context(), store.Filter{}, 0)) {
		last++
		switch {
		case errors.Is(err, store.ErrDamaged) && strings.Contains(err.Error(), fmt.Sprintf("provider %d: ", last)):
			got = append(got, fmt.Sprint(last))
		case err != nil || record.Common().PK != last:
			t.Fatalf("in place of %d: %+v, %v", last, record, err)
		}
	}
	if want := "1 2 499 500 501 1000 1001 1199 1200"; last != count || strings.Join(got, " ") != want {
		t.Errorf("of %d records, %v are damaged, want %s", last, got, want)
	}
}

// If many secrets cannot be opened, the error names the first and counts the others.
func TestDamagedSecretsAreNamed(t *testing.T) {
	t.Parallel()
	const count, named = 1000, 100
	path := filepath.Join(t.TempDir(), "test.db")
	storetest.FillSQLite(t, path, count)
	keyset := filepath.Join(filepath.Dir(path), "keyset.json")
	for _, test := range []struct {
		damage string
		want   int64
		suffix string
	}{
		{"UPDATE providers SET name = 'x'", 0, ""},
		{"UPDATE providers SET secret = x'00' WHERE pk = 999", 1, ": provider 999: secret"},
		{
			"UPDATE providers SET secret = (SELECT secret FROM providers WHERE pk = 20) WHERE pk = 10", 2,
			": provider 10: secret, provider 999: secret",
		},
		{"UPDATE providers SET secret = x'' WHERE kind = 'oauth2'", 901, fmt.Sprintf("provider 109: secret, and %d more", 901-named)},
	} {
		storetest.Execute(t, path, test.damage)
		db, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler))
		processtest.Must(t, err)
		opened := int64(0)
		_, err = store.Inspect(db).Providers(t.Context(), keyset, func(done, total int64) {
			if total != count || done < opened {
				t.Errorf("after %d, %d of %d providers are read", opened, done, total)
			}
			opened = done
		})
		if opened != count {
			t.Errorf("%d providers were read", opened)
		}
		var damaged *store.DamagedError
		switch {
		case test.want == 0 && err != nil:
			t.Error(err)
		case test.want > 0 && (!errors.As(err, &damaged) || !errors.Is(err, store.ErrDamaged)):
			t.Errorf("%s: error is %v", test.damage, err)
		case test.want > 0 && (damaged.Damaged != test.want || len(damaged.First) != int(min(test.want, named)) ||
			!strings.HasSuffix(strings.ReplaceAll(err.Error(), ": "+store.ErrDamaged.Error(), ""), test.suffix)):
			t.Errorf("%s: error is %v", test.damage, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
