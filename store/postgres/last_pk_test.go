//go:build slow

package postgres_test

import (
	"errors"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres/postgrestest"
)

// TestLastPK leaves one pk. Once it is used, creates and validations are refused.
func TestLastPK(t *testing.T) {
	t.Parallel()
	cluster := postgrestest.NewCluster(t)
	url := cluster.CreateDatabase(t)
	opened := openStore(t, url, newKeyset(t))
	cluster.Exec(t, databaseOf(t, url), "SELECT setval('providers_pk_seq', 2147483646)")
	for _, test := range []struct {
		key  string
		want error
	}{
		{"last", nil}, {"first too many", store.ErrNoPKLeft}, {"second too many", store.ErrNoPKLeft},
	} {
		if _, err := keyedValidate(t.Context(), opened, test.key); !errors.Is(err, test.want) {
			t.Errorf("%s: validation: error is %v, want %v", test.key, err, test.want)
		}
		if _, err := keyedCreate(t.Context(), opened, test.key); !errors.Is(err, test.want) {
			t.Errorf("%s: create: error is %v, want %v", test.key, err, test.want)
		}
	}
}
