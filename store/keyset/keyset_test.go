package keyset_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"example.com/providerd/store"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// dataKeys returns the data keys of a database, oldest first.
func dataKeys(t *testing.T, opened *store.Store) []keyset.Key {
	t.Helper()
	keys := processtest.Try(opened.Keys.List(t.Context())).Must(t)
	return slices.DeleteFunc(keys, func(key keyset.Key) bool { return key.Kind != "data" })
}

// expectOneKey checks that one data key has sealed every secret, and that every record can be read.
func expectOneKey(t *testing.T, opened *store.Store, records int) {
	t.Helper()
	if keys := dataKeys(t, opened); len(keys) != 1 || *keys[0].Secrets != int64(records) {
		t.Errorf("%d keys, the first with %d secrets, want one with %d", len(keys), *keys[0].Secrets, records)
	}
	processtest.Equal(t, len(storetest.Names(t, opened)), records, "readable records")
}

// A create or reseal that got its keys before they were removed stores nothing sealed with them, whichever of its
// transactions is next.
func TestNothingIsSealedWithRemovedKeys(t *testing.T) {
	t.Parallel()
	opened, faulty := storetest.NewFaulty(t)
	other, records := storetest.Create(t, faulty.Path), 1
	processtest.Must(t, storetest.Add(t.Context(), opened, "first"))
	interfered := false
	interfering := func(run func(error) error) error {
		interfered = true
		_, err := other.Keys.Rotate(t.Context())
		if err == nil {
			_, err = other.Keys.Reseal(t.Context(), func(int64, int64) {})
		}
		return errors.Join(err, run(nil))
	}
	faulty.Inserts = []storetest.Fault{interfering}
	for step := 0; step == 0 || interfered; step++ {
		processtest.Must(t, storetest.Add(t.Context(), opened, fmt.Sprint(step)))
		records++
		expectOneKey(t, opened, records)
		processtest.Try(opened.Keys.Rotate(t.Context())).Must(t)
		interfered = false
		faulty.Inject(func(f *storetest.Faulty) {
			f.Writes = append(slices.Repeat([]storetest.Fault{storetest.Passing}, step), interfering)
		})
		processtest.Try(opened.Keys.Reseal(t.Context(), func(int64, int64) {})).Must(t)
		expectOneKey(t, opened, records)
	}
	// The first reseal, the last, and one for each transaction: its beginning, the page, and the removal of the key.
	processtest.Expect(t, records >= 5, "%d records are stored, as if reseals had fewer than three transactions", records)
}

// A keyset of many data keys works, until a reseal removes the older ones.
func TestThousandKeys(t *testing.T) {
	t.Parallel()
	const rotations = 1000
	opened, faulty := storetest.NewFaulty(t)
	processtest.Must(t, storetest.Add(t.Context(), opened, "first"))
	if err := faulty.Write(t.Context(), func(tx *gorm.DB) error {
		var row struct {
			Version, DatabaseID []byte
			seal.Wrapped        `gorm:"embedded"`
		}
		master, err := seal.ReadMasterKeys(faulty.Keyset)
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
	processtest.Check(t, storetest.Add(t.Context(), opened, "second"))
	keys := dataKeys(t, opened)
	if last := len(keys) - 1; last != rotations || *keys[0].Secrets != 1 || *keys[last].Secrets != 1 || !keys[last].InUse {
		t.Errorf("%d keys, want %d, of which the first and the last have a secret", len(keys), 1+rotations)
	}
	processtest.Equal(t, len(storetest.Names(t, storetest.Create(t, faulty.Path))), 2, "readable records")
	if removed, err := opened.Keys.Reseal(t.Context(), func(int64, int64) {}); err != nil || removed != rotations {
		t.Errorf("removed %d keys, want %d, %v", removed, rotations, err)
	}
	expectOneKey(t, opened, 2)
}

// A secret that cannot be opened is left as it is, and reported once, even if the statements are run again. The others
// are sealed with the new key. The key that sealed the damaged one is kept until that is deleted.
func TestResealSkipsDamagedSecrets(t *testing.T) {
	t.Parallel()
	opened, faulty := storetest.NewFaulty(t)
	for i := range 3 {
		processtest.Must(t, storetest.Add(t.Context(), opened, fmt.Sprint(i)))
	}
	processtest.Try(opened.Keys.Rotate(t.Context())).Must(t)
	storetest.Execute(t, faulty.Path, "UPDATE providers SET secret = (SELECT secret FROM providers WHERE pk = 3) WHERE pk = 2")
	rerun := func(run func(error) error) error {
		errConflict := errors.New("conflict")
		if err := run(errConflict); !errors.Is(err, errConflict) {
			return err
		}
		return run(nil)
	}
	for _, want := range []int64{3, 1} {
		faulty.Inject(func(f *storetest.Faulty) { f.Writes = []storetest.Fault{storetest.Passing, rerun} })
		var resealed, outdated int64
		removed, err := opened.Keys.Reseal(t.Context(), func(done, total int64) { resealed, outdated = done, total })
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) != 1 || !errors.Is(err, store.ErrDamaged) ||
			!strings.Contains(err.Error(), "provider 2: secret") || outdated != want || resealed != want-1 || removed != 0 {
			t.Errorf("resealed %d of %d secrets, want %d of %d; removed %d keys; error is %v, want one ErrDamaged",
				resealed, outdated, want-1, want, removed, err)
		}
	}
	processtest.Must(t, opened.Providers.Delete(t.Context(), []int64{2}))
	if removed, err := opened.Keys.Reseal(t.Context(), func(int64, int64) {}); err != nil || removed != 1 {
		t.Errorf("removed %d keys, want 1, %v", removed, err)
	}
}

// A secret that was deleted while a page was resealed does not count as resealed.
func TestResealCountsWhatItSealed(t *testing.T) {
	t.Parallel()
	opened, faulty := storetest.NewFaulty(t)
	other := storetest.Create(t, faulty.Path)
	for i := range 3 {
		processtest.Must(t, storetest.Add(t.Context(), opened, fmt.Sprint(i)))
	}
	processtest.Try(opened.Keys.Rotate(t.Context())).Must(t)
	faulty.Inject(func(f *storetest.Faulty) {
		f.Writes = []storetest.Fault{storetest.Passing, func(run func(error) error) error {
			return errors.Join(other.Providers.Delete(t.Context(), []int64{2}), run(nil))
		}}
	})
	var counts [][2]int64
	removed, err := opened.Keys.Reseal(t.Context(), func(done, total int64) { counts = append(counts, [2]int64{done, total}) })
	if want := [][2]int64{{0, 3}, {2, 2}}; err != nil || removed != 1 || !slices.Equal(counts, want) {
		t.Errorf("progress is %v, want %v; removed %d keys, %v", counts, want, removed, err)
	}
}
