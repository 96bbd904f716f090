package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/database"
	"example.com/providerd/store/files"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// rotateAndReseal rotates the key and reseals every secret with it.
func rotateAndReseal(t *testing.T, opened *store.Store) {
	t.Helper()
	if _, err := opened.RotateKey(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := opened.Reseal(t.Context(), func(int64, int64) {}); err != nil {
		t.Error(err)
	}
}

// dataKeys returns the data keys of a database, oldest first.
func dataKeys(t *testing.T, opened *store.Store) []store.Key {
	t.Helper()
	keys, err := opened.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(keys, func(key store.Key) bool { return key.Kind != "data" })
}

// expectOneKey checks that one data key has sealed every secret, and that every record can be read.
func expectOneKey(t *testing.T, opened *store.Store, records int) {
	t.Helper()
	if keys := dataKeys(t, opened); len(keys) != 1 || *keys[0].Secrets != int64(records) {
		t.Errorf("%d keys, the first with %d secrets, want one with %d", len(keys), *keys[0].Secrets, records)
	}
	if stored := names(t, opened); len(stored) != records {
		t.Errorf("names are %v, want %d", stored, records)
	}
}

// A create or reseal that got its keys before they were removed stores nothing sealed with them, whichever of its
// transactions is next.
func TestNothingIsSealedWithRemovedKeys(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	other, records := create(t, faulty.path), 1
	if err := add(t.Context(), opened, "first"); err != nil {
		t.Fatal(err)
	}
	interfered := false
	interfering := func(run func(statements) error, what statements) error {
		interfered = true
		rotateAndReseal(t, other)
		return run(what)
	}
	faulty.inserts = []insertFault{func(run func() error) error {
		interfered = true
		rotateAndReseal(t, other)
		return run()
	}}
	for step := 0; step == 0 || interfered; step++ {
		if err := add(t.Context(), opened, fmt.Sprint(step)); err != nil {
			t.Fatal(err)
		}
		records++
		expectOneKey(t, opened, records)
		if _, err := opened.RotateKey(t.Context()); err != nil {
			t.Fatal(err)
		}
		interfered = false
		faulty.count(func(f *faultyDatabase) { f.writes = append(slices.Repeat([]fault{passing}, step), interfering) })
		if _, err := opened.Reseal(t.Context(), func(int64, int64) {}); err != nil {
			t.Fatal(err)
		}
		expectOneKey(t, opened, records)
	}
	// The first reseal, the last, and one for each transaction: its beginning, the page, and the removal of the key.
	if records < 5 {
		t.Errorf("%d records are stored, as if reseals had fewer than three transactions", records)
	}
}

// Each reseal is interrupted in one of its transactions, and continues what the one before it left. The last is not
// interrupted, and finds nothing left to seal.
func TestNextResealCompletesInterruptedOne(t *testing.T) {
	t.Parallel()
	const count, never = 450, 100
	dir := t.TempDir()
	if err := storetest.FillSQLite(t.Context(), filepath.Join(dir, "test.db"), count); err != nil {
		t.Fatal(err)
	}
	opened, faulty := newFaultyIn(t, dir)
	if _, err := opened.RotateKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	failures := []fault{losing(store.ErrOutcomeUnknown), failing(store.ErrUnavailable), rollingBack}
	left, removed := int64(count), 0
	// The beginning, the first page, the second, the first of what is left, and the removal of the key.
	for i, step := range []int{0, 1, 2, 1, 2, never} {
		failure := failures[i%len(failures)]
		faulty.count(func(f *faultyDatabase) { f.writes = append(slices.Repeat([]fault{passing}, step), failure) })
		var err error
		removed, err = opened.Reseal(t.Context(), func(_, total int64) { left = total })
		if (err == nil) != (step == never) {
			t.Errorf("reseal %d: %v", step, err)
		}
		if stored := names(t, opened); len(stored) != count {
			t.Errorf("%d records can be read, want %d", len(stored), count)
		}
	}
	expectOneKey(t, opened, count)
	if left != 0 || removed != 1 {
		t.Errorf("the last reseal found %d secrets, and removed %d keys", left, removed)
	}
}

// A record read before its secret was resealed is read again if its key has been removed.
func TestSecretResealedMeanwhileIsRead(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	if err := add(t.Context(), opened, "x"); err != nil {
		t.Fatal(err)
	}
	_, before := faulty.copied(t)
	rotateAndReseal(t, opened)
	if err := opened.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	faulty.elsewhere, faulty.readsElsewhere = before.Database, 1
	if _, err := opened.Provider(t.Context(), 1); err != nil || faulty.readsElsewhere != 0 {
		t.Errorf("%d reads remain: %v", faulty.readsElsewhere, err)
	}
}

// A store that has noticed that its keyset file is away neither creates nor reads, until the file is put back.
func TestKeysetIsAway(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	pk, _, err := addKeyed(t, opened, "x")
	if err := errors.Join(err, os.Rename(faulty.keyset, faulty.keyset+".away")); err != nil {
		t.Fatal(err)
	}
	// Nobody probes it: it finds out by itself.
	key := 0
	processtest.WaitUntil(t, "creates are refused", func() bool {
		key++
		_, _, err := addKeyed(t, opened, fmt.Sprint(key))
		return errors.Is(err, store.ErrNoKeyset)
	})
	readyErr := opened.Ready(t.Context())
	_, _, createErr := addKeyed(t, opened, "y")
	_, readErr := opened.Provider(t.Context(), pk)
	for _, err := range []error{readyErr, createErr, readErr} {
		if !errors.Is(err, store.ErrNoKeyset) || !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("error is %v, want ErrNoKeyset and ErrUnavailable", err)
		}
	}
	if err := os.Rename(faulty.keyset+".away", faulty.keyset); err != nil {
		t.Fatal(err)
	}
	if _, _, err := addKeyed(t, opened, "y"); err != nil {
		t.Error(err)
	}
}

// A database that has lost its keyset gets no other one, with which its secrets would not open.
func TestLostKeysetIsNotReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	if err := storetest.FillSQLite(t.Context(), path, 1); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "DELETE FROM keyset")
	if _, err := storetest.CreateSQLite(t.Context(), path, ""); !errors.Is(err, database.ErrCorrupt) {
		t.Errorf("error is %v, want ErrCorrupt", err)
	}
}

// Once the data keys are encrypted with a new master key, the old one opens only older backups. A server that has only
// the old one refuses creates. Each error names the key that is missing.
func TestMasterKeyIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, backup, old := filepath.Join(dir, "test.db"), filepath.Join(dir, "backup.db"), filepath.Join(dir, "keyset.json")
	server := create(t, path)
	if err := add(t.Context(), server, "x"); err != nil {
		t.Fatal(err)
	}
	execute(t, path, "VACUUM INTO '"+backup+"'")
	first, err := seal.ReadMasterKeys(old)
	both, bothErr := first.WithNew()
	second, secondErr := both.OnlyPrimary()
	all, successor := filepath.Join(dir, "all.json"), filepath.Join(dir, "successor.json")
	if err := errors.Join(err, bothErr, secondErr, both.Create(all, files.Owner{}), second.Create(successor, files.Owner{})); err != nil {
		t.Fatal(err)
	}
	rewrapping, err := storetest.OpenSQLite(t.Context(), path, all)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := rewrapping.RewrapKeys(t.Context()); id != second.PrimaryID() || err != nil {
		t.Errorf("rewrapped with %d, want %d, %v", id, second.PrimaryID(), err)
	}
	expectMissing := func(err error, id uint32) {
		t.Helper()
		if isMissing := errors.Is(err, store.ErrKeysetUnusable) &&
			strings.Contains(err.Error(), fmt.Sprintf("lacks master key %d,", id)); isMissing != (id > 0) || !isMissing && err != nil {
			t.Errorf("error is %v, want that key %d is missing", err, id)
		}
	}
	expectMissing(rewrapping.Close(), 0)
	expectMissing(add(t.Context(), server, "y"), second.PrimaryID())
	for _, test := range []struct {
		path, keyset string
		missing      uint32
	}{
		{path, all, 0},
		{path, successor, 0},
		{path, old, second.PrimaryID()},
		{backup, all, 0},
		{backup, old, 0},
		{backup, successor, first.PrimaryID()},
	} {
		opened, err := storetest.OpenSQLite(t.Context(), test.path, test.keyset)
		expectMissing(err, test.missing)
		if err == nil {
			expectOneKey(t, opened, 1)
			expectMissing(opened.Close(), 0)
		}
	}
}

// A keyset of many data keys works, until a reseal removes the older ones.
func TestThousandKeys(t *testing.T) {
	t.Parallel()
	const rotations = 1000
	opened, faulty := newFaulty(t)
	if err := add(t.Context(), opened, "first"); err != nil {
		t.Fatal(err)
	}
	if err := faulty.Write(t.Context(), func(tx *gorm.DB) error {
		var row struct {
			Version, DatabaseID []byte
			seal.Wrapped        `gorm:"embedded"`
		}
		master, err := seal.ReadMasterKeys(faulty.keyset)
		if err := errors.Join(err, tx.Table("keyset").Take(&row).Error); err != nil {
			return err
		}
		keys, err := row.Open(master, row.DatabaseID)
		for i := 0; i < rotations && err == nil; i++ {
			keys, err = keys.Rotated()
		}
		if err == nil {
			row.Wrapped, err = keys.Wrap(master, master.PrimaryID(), row.DatabaseID)
		}
		row.Version = []byte("another")
		return errors.Join(err, tx.Table("keyset").Where("pk = 1").Updates(&row).Error)
	}); err != nil {
		t.Fatal(err)
	}
	if err := add(t.Context(), opened, "second"); err != nil {
		t.Error(err)
	}
	keys := dataKeys(t, opened)
	if last := len(keys) - 1; last != rotations || *keys[0].Secrets != 1 || *keys[last].Secrets != 1 || !keys[last].InUse {
		t.Errorf("%d keys, want %d, of which the first and the last have a secret", len(keys), 1+rotations)
	}
	if stored := names(t, create(t, faulty.path)); len(stored) != 2 {
		t.Errorf("names are %v", stored)
	}
	if removed, err := opened.Reseal(t.Context(), func(int64, int64) {}); err != nil || removed != rotations {
		t.Errorf("removed %d keys, want %d, %v", removed, rotations, err)
	}
	expectOneKey(t, opened, 2)
}
