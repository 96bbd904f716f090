package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// If the table sqlite_sequence was lost, or is behind, a server and a command that writes set it, so that no pk is given
// twice, and one at its end is named.
func TestSequencesOverSQLite(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"lost":   "DELETE FROM sqlite_sequence",
		"behind": "UPDATE sqlite_sequence SET seq = 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			opened, err := storetest.CreateSQLite(t.Context(), path, "")
			processtest.Must(t, err)
			for want := int64(1); want <= 6; want++ {
				pk, err := createAny(t, opened)
				if err != nil || pk != want {
					t.Fatalf("pk is %d, want %d, %v", pk, want, err)
				}
				processtest.Must(t, opened.DeleteProviders(t.Context(), []int64{pk}), opened.Close())
				storetest.Execute(t, path, damage)
				if want%2 == 0 {
					// A command creates the next one.
					opened, err = storetest.OpenSQLite(t.Context(), path, "")
					processtest.Must(t, err)
					_, err = opened.RotateKey(t.Context())
				} else {
					opened, err = storetest.CreateSQLite(t.Context(), path, "")
				}
				processtest.Must(t, err)
			}
			for found, err := range opened.Contradictions(t.Context()) {
				t.Errorf("the log says %v, %v", found, err)
			}
			expectEndOfSequence(t, opened, path)
		})
	}
}

func createAny(t *testing.T, opened *store.Store) (pk int64, err error) {
	t.Helper()
	request := store.CreateRequest{Name: "any"}
	record, _, err := opened.CreateWorkspaceDirectoryProvider(t.Context(), request, storetest.FullWorkspaceDirectory())
	return record.PK, err
}

// expectEndOfSequence checks that a sequence at its end fails creates, readiness and the next start, and closes the store.
func expectEndOfSequence(t *testing.T, opened *store.Store, path string) {
	t.Helper()
	storetest.Execute(t, path, "UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'events'")
	if _, err := createAny(t, opened); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("create: error is %v, want ErrUnavailable", err)
	}
	ready := opened.Ready(t.Context())
	processtest.Must(t, opened.Close())
	_, opening := storetest.CreateSQLite(t.Context(), path, "")
	const says = "storage is unavailable: the last key is the largest possible, 9223372036854775807, so no row can be added to " +
		"these tables: events; restore a backup, or correct the table sqlite_sequence"
	for what, err := range map[string]error{"readiness": ready, "start": opening} {
		if !errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("%s: error is %v, want %q", what, err, says)
		}
	}
}
