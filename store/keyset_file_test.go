package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

func TestKeysetFileIsMadeWithTheDatabase(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	elsewhere := filepath.Join(folder, "keys", "other.json")
	if err := os.Mkdir(filepath.Dir(elsewhere), 0o700); err != nil {
		t.Fatal(err)
	}
	for keyset, want := range map[string]string{"": filepath.Join(folder, "keyset.json"), elsewhere: elsewhere} {
		database, err := storetest.CreateSQLite(t.Context(), filepath.Join(folder, filepath.Base(want)+".db"), keyset)
		if err != nil {
			t.Fatal(err)
		}
		if err := database.Close(); err != nil {
			t.Error(err)
		}
		info, err := os.Stat(want)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", want, info, err)
		}
	}
}

// A database that is sealed is refused with any keyset but its own, and no new one is made.
func TestKeysetThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	other, err := os.ReadFile(filepath.Join(filepath.Dir(newSealed(t).path), "keyset.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, harm := range map[string]struct {
		do   func(path string) error
		want error
	}{
		"missing":   {os.Remove, store.ErrNoKeyset},
		"readable":  {func(path string) error { return os.Chmod(path, 0o640) }, store.ErrKeysetUnusable},
		"writable":  {func(path string) error { return os.Chmod(path, 0o602) }, store.ErrKeysetUnusable},
		"a folder":  {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, store.ErrKeysetUnusable},
		"empty":     {func(path string) error { return os.WriteFile(path, nil, 0o600) }, store.ErrKeysetUnusable},
		"rubbish":   {func(path string) error { return os.WriteFile(path, []byte(canary), 0o600) }, store.ErrKeysetUnusable},
		"no Tink":   {func(path string) error { return os.WriteFile(path, []byte(`{"sealing":{"`+canary+`":1}}`), 0o600) }, store.ErrKeysetUnusable},
		"cut off":   {func(path string) error { return os.Truncate(path, 100) }, store.ErrKeysetUnusable},
		"another's": {func(path string) error { return os.WriteFile(path, other, 0o600) }, store.ErrKeysetUnusable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSealed(t)
			path := filepath.Join(filepath.Dir(s.path), "keyset.json")
			good, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := harm.do(path); err != nil {
				t.Fatal(err)
			}
			if err := s.database.Submit(t.Context(), "x").Wait(); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, harm.want) {
				t.Errorf("create: error is %v, want %v", err, harm.want)
			}
			if err := s.database.Ready(t.Context()); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("Ping: error is %v, want ErrUnavailable", err)
			}
			if _, err := s.database.Provider(t.Context(), 1); !errors.Is(err, harm.want) {
				t.Errorf("read: error is %v, want %v", err, harm.want)
			}
			for _, open := range []func() (*store.Store, error){
				func() (*store.Store, error) { return storetest.OpenSQLite(t.Context(), s.path, "") },
				func() (*store.Store, error) { return storetest.CreateSQLite(t.Context(), s.path, "") },
			} {
				if _, err := open(); !errors.Is(err, harm.want) || strings.Contains(err.Error(), canary) {
					t.Errorf("open: error is %v, want %v", err, harm.want)
				}
			}
			if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, good, 0o600), os.Chmod(path, 0o600)); err != nil {
				t.Fatal(err)
			}
			if err := s.database.Submit(t.Context(), "put back").Wait(); err != nil {
				t.Error(err)
			}
			s.check(t, s.database)
		})
	}
}

// Databases whose keysets are in each other's folders do not wait for each other.
func TestKeysetsInEachOthersFolders(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 20 {
		folders := []string{t.TempDir(), t.TempDir()}
		var group sync.WaitGroup
		for i := range folders {
			group.Go(func() {
				database, err := storetest.CreateSQLite(ctx, filepath.Join(folders[i], "test.db"),
					filepath.Join(folders[1-i], "keys.json"))
				if err != nil {
					t.Error(err)
					return
				}
				if err := database.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
}

// Every key that is added is noted once, however many programs add keys at a time.
func TestEveryRotationIsNoted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	const rotations = 8
	noted := map[int64]int{}
	var mutex sync.Mutex
	var group sync.WaitGroup
	for range rotations {
		database := create(t, path)
		group.Go(func() {
			id, err := database.RotateKey(t.Context())
			if err != nil {
				t.Error(err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			noted[int64(id)]--
		})
	}
	group.Wait()
	for event, err := range create(t, path).Events(t.Context(), store.Filter{}, store.EventCursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Event == store.EventKeyRotated {
			noted[event.ID]++
		}
	}
	for id, count := range noted {
		if count != 0 {
			t.Errorf("key %d was noted %d times", id, count+1)
		}
	}
	if len(noted) != rotations {
		t.Errorf("%d keys, want %d", len(noted), rotations)
	}
}
