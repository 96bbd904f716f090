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
)

// If many secrets cannot be opened, the error names the first and counts the others.
func TestDamagedSecretsAreNamed(t *testing.T) {
	t.Parallel()
	const count, named = 1000, 100
	path := filepath.Join(t.TempDir(), "test.db")
	if err := storetest.FillSQLite(t.Context(), path, count); err != nil {
		t.Fatal(err)
	}
	keyset := filepath.Join(filepath.Dir(path), "keyset.json")
	for _, test := range []struct {
		damage string
		want   int64
		suffix string
	}{
		{"UPDATE providers SET name = 'x'", 0, ""},
		{"UPDATE oauth2_providers SET client_secret = x'00' WHERE pk = 999", 1, ": provider 999: client_secret"},
		{
			"UPDATE workspace_directory_providers SET credentials = (SELECT credentials FROM workspace_directory_providers " +
				"WHERE pk = 20) WHERE pk = 10", 2, ": provider 999: client_secret, provider 10: credentials",
		},
		{"UPDATE oauth2_providers SET client_secret = x''", 901, fmt.Sprintf("provider 111: client_secret, and %d more", 901-named)},
	} {
		execute(t, path, test.damage)
		db, err := sqlite.Open(t.Context(), path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		opened := int64(0)
		err = store.CheckSecrets(t.Context(), db, keyset, func(done, total int64) {
			if total != count || done <= opened {
				t.Errorf("after %d, %d of %d secrets are opened", opened, done, total)
			}
			opened = done
		})
		if opened != count {
			t.Errorf("%d secrets were opened", opened)
		}
		var damaged *store.DamagedSecretsError
		switch {
		case test.want == 0 && err != nil:
			t.Error(err)
		case test.want > 0 && (!errors.As(err, &damaged) || !errors.Is(err, store.ErrDamaged)):
			t.Errorf("%s: error is %v", test.damage, err)
		case test.want > 0 && (damaged.Damaged != test.want || len(damaged.First) != int(min(test.want, named)) ||
			!strings.HasSuffix(err.Error(), test.suffix)):
			t.Errorf("%s: error is %v", test.damage, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
