package store_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/records"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// No pk is given twice if the last provider is deleted by a command or by another program, or its events are missing, and
// a table without a higher key is named.
func TestSequencesOverSQLite(t *testing.T) {
	t.Parallel()
	const noCreates = "DELETE FROM events WHERE event = 'provider created'"
	for name, test := range map[string]struct {
		isDeleted bool
		damage    string
	}{
		"deleted":                           {isDeleted: true, damage: "DELETE FROM sqlite_sequence"},
		"deleted, the create is not listed": {isDeleted: true, damage: noCreates},
		"deleted by another program":        {damage: "DELETE FROM providers"},
		"not listed":                        {damage: noCreates},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			opened, err := storetest.CreateSQLite(t.Context(), path, "")
			processtest.Must(t, err)
			for want := int64(1); want <= 6; want++ {
				create := createAny
				if want%3 == 0 {
					create = createByCommand
				}
				pk, err := create(t, opened)
				if err != nil || pk != want {
					t.Fatalf("pk is %d, want %d, %v", pk, want, err)
				}
				if test.isDeleted {
					processtest.Must(t, opened.Providers.Delete(t.Context(), []int64{pk}))
				}
				storetest.Execute(t, path, test.damage)
				if want%2 == 0 {
					// The server continues.
					continue
				}
				processtest.Must(t, opened.Close())
				opened, err = storetest.CreateSQLite(t.Context(), path, "")
				processtest.Must(t, err)
			}
			for found, err := range opened.Log.Contradictions(t.Context()) {
				if name == "deleted" || err != nil {
					t.Errorf("the log says %v, %v", found, err)
				}
			}
			expectEndOfKeys(t, opened, path)
		})
	}
}

func createAny(t *testing.T, opened *store.Store) (pk int64, err error) {
	t.Helper()
	request := store.CreateRequest{Name: "any"}
	record, _, err := opened.Providers.CreateWorkspaceDirectory(t.Context(), request, storetest.FullWorkspaceDirectory())
	return record.PK, err
}

func createByCommand(t *testing.T, opened *store.Store) (pk int64, err error) {
	t.Helper()
	requested := records.WorkspaceDirectoryProvider{
		Provider: records.Provider{Name: "any", Kind: records.KindWorkspaceDirectory}, WorkspaceDirectorySettings: storetest.FullWorkspaceDirectory(),
	}
	pks, err := opened.Providers.Change(t.Context(), func(store.Reader) ([]store.Change, error) {
		return []store.Change{{Requested: requested}}, nil
	})
	return slices.Concat(pks, []int64{0})[0], err
}

// expectEndOfKeys checks that the largest id of an event fails creates, readiness and the next start, and closes the
// store.
func expectEndOfKeys(t *testing.T, opened *store.Store, path string) {
	t.Helper()
	const atEnd = "UPDATE events SET id = 9223372036854775806 WHERE id = (SELECT max(id) FROM events)"
	storetest.Execute(t, path, atEnd)
	if pk, err := createAny(t, opened); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("create: pk is %d, error is %v, want ErrUnavailable", pk, err)
	}
	ready := opened.Ready(t.Context())
	processtest.Must(t, opened.Close())
	_, opening := storetest.CreateSQLite(t.Context(), path, "")
	const says = "storage is unavailable: the last key is the largest possible, 9223372036854775806, so no row can be added to " +
		"these tables: events; restore a backup, or lower that key"
	for what, err := range map[string]error{"readiness": ready, "start": opening} {
		if !errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), says) {
			t.Errorf("%s: error is %v, want %q", what, err, says)
		}
	}
}
