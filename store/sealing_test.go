package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// canary is in every secret of the tests, and occurs nowhere else.
const canary = "canary-7e1f"

// sealed is a database with two OAuth2 providers and a directory, whose secrets are known.
type sealed struct {
	path     string
	database *store.Store
	// records are the records as created, by pk.
	records map[int32]store.Record
}

func newSealed(t *testing.T) *sealed {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	s := &sealed{path: path, database: create(t, path), records: map[int32]store.Record{}}
	for i := range 2 {
		record, _, err := s.database.CreateOAuth2Provider(t.Context(), store.CreateRequest{Name: "x"}, store.OAuth2Settings{
			ClientID: fmt.Sprint(i), ClientSecret: store.NewSecret(fmt.Sprintf("%s-%d", canary, i)),
			PropertyMappings: []uuid.UUID{}, JWKSSources: []uuid.UUID{},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.records[record.PK] = record
	}
	record, _, err := s.database.CreateWorkspaceDirectoryProvider(t.Context(), store.CreateRequest{Name: "x"},
		store.WorkspaceDirectorySettings{
			Credentials:      store.NewSecret(`{"key":"` + canary + `"}`),
			PropertyMappings: []uuid.UUID{}, PropertyMappingsGroup: []uuid.UUID{},
		})
	if err != nil {
		t.Fatal(err)
	}
	s.records[record.PK] = record
	return s
}

// secret returns the secret of a record.
func secret(record store.Record) string {
	switch record := record.(type) {
	case store.OAuth2Provider:
		return record.ClientSecret.Reveal()
	case store.WorkspaceDirectoryProvider:
		return record.Credentials.Reveal()
	default:
		return ""
	}
}

// check reads all records, whose secrets must be unchanged.
func (s *sealed) check(t *testing.T, database *store.Store) {
	t.Helper()
	for pk, want := range s.records {
		record, err := database.Provider(t.Context(), pk)
		if err != nil {
			t.Error(err)
			continue
		}
		if secret(record) != secret(want) {
			t.Errorf("the secret of provider %d has changed", pk)
		}
	}
}

// expectDamaged reads a record, which must fail with an error that names the record and the column.
func (s *sealed) expectDamaged(t *testing.T, pk int32, column string) {
	t.Helper()
	record, err := s.database.Provider(t.Context(), pk)
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), fmt.Sprintf("provider %d", pk)) || !strings.Contains(err.Error(), column) {
		t.Fatalf("provider %d: error is %v, want ErrDamaged with its name; record is %v", pk, err, record)
	}
}

// open connects to the database directly, without the store.
func (s *sealed) open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", s.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func sealedSecret(t *testing.T, db *sql.DB, pk int32) []byte {
	t.Helper()
	var value []byte
	err := db.QueryRowContext(t.Context(), `SELECT client_secret FROM oauth2_providers WHERE pk = ?1
		UNION ALL SELECT credentials FROM workspace_directory_providers WHERE pk = ?1`, pk).Scan(&value)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func setSealedSecret(t *testing.T, db *sql.DB, pk int32, value []byte) {
	t.Helper()
	for _, statement := range []string{
		"UPDATE oauth2_providers SET client_secret = ? WHERE pk = ?",
		"UPDATE workspace_directory_providers SET credentials = ? WHERE pk = ?",
	} {
		if _, err := db.ExecContext(t.Context(), statement, value, pk); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSecretsAreSealedOnDisk(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	files, err := filepath.Glob(filepath.Dir(s.path) + "/*")
	if err != nil || len(files) < 4 {
		t.Fatalf("files are %v, %v", files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), canary) {
			t.Errorf("a secret is in %s", file)
		}
	}
	s.check(t, s.database)
}

func TestSwappedSecretsAreDamaged(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	db := s.open(t)
	first, second, third := sealedSecret(t, db, 1), sealedSecret(t, db, 2), sealedSecret(t, db, 3)
	setSealedSecret(t, db, 1, second)
	setSealedSecret(t, db, 2, first)
	s.expectDamaged(t, 1, "client_secret")
	s.expectDamaged(t, 2, "client_secret")
	setSealedSecret(t, db, 1, third)
	setSealedSecret(t, db, 3, first)
	s.expectDamaged(t, 1, "client_secret")
	s.expectDamaged(t, 3, "credentials")
	for pk, value := range map[int32][]byte{1: first, 2: second, 3: third} {
		setSealedSecret(t, db, pk, value)
	}
	s.check(t, s.database)
}

func TestKeyRotationWithRunningServer(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	db := s.open(t)
	operator, err := storetest.OpenSQLite(t.Context(), s.path, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = operator.Close() })
	key, err := operator.RotateKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.database.Submit(t.Context(), "after").Wait(); err != nil {
		t.Fatal(err)
	}
	before, after := sealedSecret(t, db, 1)[:5], sealedSecret(t, db, 4)[:5]
	if slices.Equal(before, after) {
		t.Error("the running store seals with the old key")
	}
	s.check(t, s.database)
	s.check(t, operator)

	var steps []int64
	if err := operator.Reseal(t.Context(), func(done, _ int64) { steps = append(steps, done) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(steps, []int64{0, 2, 3}) {
		t.Errorf("progress is %v", steps)
	}
	for pk := range int32(3) {
		if !slices.Equal(sealedSecret(t, db, pk+1)[:5], after) {
			t.Errorf("provider %d is sealed with the old key", pk+1)
		}
	}
	s.check(t, s.database)
	var events []store.EventKind
	for event, err := range operator.Events(
		t.Context(), store.Filter{Since: s.records[1].Common().CreatedAt.AddDate(0, 0, -1)}, store.EventCursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event.Event)
		if event.Event == store.EventKeyRotated && event.ID != int64(key) {
			t.Errorf("key %d was added, but %d recorded", key, event.ID)
		}
	}
	want := []store.EventKind{
		store.EventKeyCreated, store.EventProviderCreated, store.EventProviderCreated, store.EventProviderCreated,
		store.EventKeyRotated, store.EventProviderCreated, store.EventSecretsResealed,
	}
	if !slices.Equal(events, want) {
		t.Errorf("events are %v, want %v", events, want)
	}
}

func TestNextResealCompletesInterruptedOne(t *testing.T) {
	t.Parallel()
	s := newSealed(t)
	const count = 450
	for i := range count {
		if err := s.database.Submit(t.Context(), fmt.Sprintf("more %d", i)).Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.database.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := s.database.Reseal(ctx, func(done, _ int64) {
		if done > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v, want context.Canceled", err)
	}
	var left int64 = -1
	err = s.database.Reseal(t.Context(), func(_, total int64) { left = total })
	if err != nil || left <= 0 || left >= count {
		t.Errorf("%d of %d were left, %v", left, count+3, err)
	}
	if err := s.database.Reseal(t.Context(), func(_, total int64) { left = total }); err != nil || left != 0 {
		t.Errorf("%d are left after the second reseal, %v", left, err)
	}
	s.check(t, s.database)
}
