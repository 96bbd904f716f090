package audit_test

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/store/audit"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

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
		_, err = audit.CheckProviders(t.Context(), db, keyset, func(done, total int64) {
			processtest.Expect(t, total == count && done >= opened, "after %d, %d of %d providers are read", opened, done, total)
			opened = done
		})
		processtest.Expect(t, opened == count, "%d providers were read", opened)
		damaged, isDamaged := errors.AsType[*audit.DamagedError](err)
		if isDamaged != (test.want > 0) || errors.Is(err, seal.ErrDamaged) != isDamaged || !isDamaged && err != nil {
			t.Errorf("%s: error is %v", test.damage, err)
		} else if isDamaged && (damaged.Damaged != test.want || len(damaged.First) != int(min(test.want, named)) ||
			!strings.HasSuffix(strings.ReplaceAll(err.Error(), ": "+seal.ErrDamaged.Error(), ""), test.suffix)) {
			t.Errorf("%s: error is %v", test.damage, err)
		}
		processtest.Must(t, db.Close())
	}
}
