package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"pgregory.net/rapid"

	"example.com/providerd/store"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest"
	"example.com/providerd/store/storetest/processtest"
)

// dataKeys returns the data keys of a database, oldest first.
func dataKeys(t *testing.T, opened *store.Store) []keyset.Key {
	t.Helper()
	keys, err := opened.Keys.List(t.Context())
	processtest.Must(t, err)
	return slices.DeleteFunc(keys, func(key keyset.Key) bool { return key.Kind != "data" })
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
	processtest.Must(t, add(t.Context(), opened, "first"))
	interfered := false
	interfering := func(run func(error) error) error {
		interfered = true
		_, err := other.Keys.Rotate(t.Context())
		if err == nil {
			_, err = other.Reseal(t.Context(), func(int64, int64) {})
		}
		return errors.Join(err, run(nil))
	}
	faulty.inserts = []fault{interfering}
	for step := 0; step == 0 || interfered; step++ {
		processtest.Must(t, add(t.Context(), opened, fmt.Sprint(step)))
		records++
		expectOneKey(t, opened, records)
		if _, err := opened.Keys.Rotate(t.Context()); err != nil {
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

// A keyset of many data keys works, until a reseal removes the older ones.
func TestThousandKeys(t *testing.T) {
	t.Parallel()
	const rotations = 1000
	opened, faulty := newFaulty(t)
	processtest.Must(t, add(t.Context(), opened, "first"))
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

// A secret that cannot be opened is left as it is, and reported once, even if the statements are run again. The others
// are sealed with the new key. The key that sealed the damaged one is kept until that is deleted.
func TestResealSkipsDamagedSecrets(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	for i := range 3 {
		processtest.Must(t, add(t.Context(), opened, fmt.Sprint(i)))
	}
	if _, err := opened.Keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, faulty.path, "UPDATE providers SET secret = (SELECT secret FROM providers WHERE pk = 3) WHERE pk = 2")
	rerun := func(run func(error) error) error {
		errConflict := errors.New("conflict")
		if err := run(errConflict); !errors.Is(err, errConflict) {
			return err
		}
		return run(nil)
	}
	for _, want := range []int64{3, 1} {
		faulty.count(func(f *faultyDatabase) { f.writes = []fault{passing, rerun} })
		var resealed, outdated int64
		removed, err := opened.Reseal(t.Context(), func(done, total int64) { resealed, outdated = done, total })
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok || len(joined.Unwrap()) != 1 || !errors.Is(err, store.ErrDamaged) ||
			!strings.Contains(err.Error(), "provider 2: secret") || outdated != want || resealed != want-1 || removed != 0 {
			t.Errorf("resealed %d of %d secrets, want %d of %d; removed %d keys; error is %v, want one ErrDamaged",
				resealed, outdated, want-1, want, removed, err)
		}
	}
	if err := opened.DeleteProviders(t.Context(), []int64{2}); err != nil {
		t.Fatal(err)
	}
	if removed, err := opened.Reseal(t.Context(), func(int64, int64) {}); err != nil || removed != 1 {
		t.Errorf("removed %d keys, want 1, %v", removed, err)
	}
}

// A secret that was deleted while a page was resealed does not count as resealed.
func TestResealCountsWhatItSealed(t *testing.T) {
	t.Parallel()
	opened, faulty := newFaulty(t)
	other := create(t, faulty.path)
	for i := range 3 {
		processtest.Must(t, add(t.Context(), opened, fmt.Sprint(i)))
	}
	if _, err := opened.Keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	faulty.count(func(f *faultyDatabase) {
		f.writes = []fault{passing, func(run func(error) error) error {
			return errors.Join(other.DeleteProviders(t.Context(), []int64{2}), run(nil))
		}}
	})
	var counts [][2]int64
	removed, err := opened.Reseal(t.Context(), func(done, total int64) { counts = append(counts, [2]int64{done, total}) })
	if want := [][2]int64{{0, 3}, {2, 2}}; err != nil || removed != 1 || !slices.Equal(counts, want) {
		t.Errorf("progress is %v, want %v; removed %d keys, %v", counts, want, removed, err)
	}
}

// A caller counts from 14 days before its newest token expires until 14 days after, unless it is renewed or revoked.
func TestExpiryOfOldTokens(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	path := filepath.Join(t.TempDir(), "test.db")
	database := create(t, path)
	for name, left := range map[string]time.Duration{
		"later": 20 * day, "soon": 10 * day, "expired": -10 * day, "abandoned": -20 * day, "renewed": -time.Hour, "revoked": -time.Hour,
	} {
		_, token, err := database.CreateToken(t.Context(), store.TokenGrant{Name: name, Operations: []string{"one"}, ExpiresIn: day})
		processtest.Must(t, err)
		storetest.Execute(t, path, fmt.Sprintf("UPDATE tokens SET created_at = 1, expires_at = %d WHERE id = %d",
			time.Now().Add(left).UnixMicro(), token.ID))
		switch name {
		case "renewed":
			_, _, _, err = database.RenewToken(t.Context(), token.ID, 90*day, time.Hour)
		case "revoked":
			_, err = database.RevokeTokens(t.Context(), name)
		}
		processtest.Must(t, err)
	}
	expiry, err := database.TokenExpiry(t.Context(), 14*day)
	if err != nil || expiry.Callers != 2 || time.Since(expiry.First).Round(time.Hour) != 10*day {
		t.Errorf("it is %+v, %v", expiry, err)
	}
}

func TestRandomAlphanumericIsUniform(t *testing.T) {
	t.Parallel()
	const perCharacter = 2000
	counts := map[rune]int{}
	for _, r := range seal.RandomAlphanumeric(62 * perCharacter) {
		counts[r]++
	}
	if len(counts) != 62 {
		t.Errorf("%d different characters, want 62", len(counts))
	}
	// Six standard deviations of the binomial distribution are about 270.
	for r, count := range counts {
		if count < perCharacter-270 || count > perCharacter+270 {
			t.Errorf("%q occurs %d times, want about %d", r, count, perCharacter)
		}
	}
	if !regexp.MustCompile(`^[0-9A-Za-z]{40}$`).MatchString(seal.RandomAlphanumeric(40)) {
		t.Error("text is not 40 letters and digits")
	}
}

// Replacing, omitting or doubling a character, or swapping two neighbors, is detected without the database.
func TestTokenTextDetectsEverySingleError(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := store.NewTokenText()
		if !regexp.MustCompile(`^pvd_[0-9A-Za-z]{40}$`).MatchString(text) || !store.IsTokenText(text) {
			t.Fatalf("%q does not have the form of a token", text)
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		var changed []string
		for with := range 256 {
			character := string([]byte{byte(with)})
			changed = append(changed, text[:at]+character+text[at+1:], text[:at]+character+text[at:])
		}
		changed = append(changed, text[:at], text[:at]+text[at+1:], text+text[at:], text[at:]+text[:at])
		if at > 0 {
			changed = append(changed, text[:at-1]+text[at:at+1]+text[at-1:at]+text[at+1:])
		}
		for _, typed := range changed {
			if store.IsTokenText(typed) != (typed == text) {
				t.Errorf("%q is accepted for the token %q", typed, text)
			}
		}
	})
}

// A token that is not in files that were changed may be valid.
func TestTokenInChangedFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	database, token := create(t, path), store.NewTokenText()
	if _, err := database.FindToken(t.Context(), token); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error is %v, want ErrNotFound", err)
	}
	processtest.Must(t, os.Rename(path, path+".moved"))
	if _, err := database.FindToken(t.Context(), token); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("error is %v, want ErrUnavailable", err)
	}
	processtest.Must(t, os.Rename(path+".moved", path))
}
