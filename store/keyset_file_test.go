package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/providerd/store"
	"example.com/providerd/store/storetest"
)

// A sealed database is refused with any other keyset, and no new keyset is created.
func TestWrongKeysetIsRefused(t *testing.T) {
	t.Parallel()
	other, err := os.ReadFile(filepath.Join(filepath.Dir(newSealed(t).path), "keyset.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]struct {
		do   func(path string) error
		want error
	}{
		"missing":   {os.Remove, store.ErrNoKeyset},
		"readable":  {func(path string) error { return os.Chmod(path, 0o640) }, store.ErrKeysetUnusable},
		"garbage":   {func(path string) error { return os.WriteFile(path, []byte(canary), 0o600) }, store.ErrKeysetUnusable},
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
			if err := damage.do(path); err != nil {
				t.Fatal(err)
			}
			if err := s.database.Submit(t.Context(), "x").Wait(); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, damage.want) {
				t.Errorf("create: error is %v, want %v", err, damage.want)
			}
			if err := s.database.Ready(t.Context()); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("Ready: error is %v, want ErrUnavailable", err)
			}
			if _, err := s.database.Provider(t.Context(), 1); !errors.Is(err, damage.want) {
				t.Errorf("read: error is %v, want %v", err, damage.want)
			}
			for _, open := range []func() (*store.Store, error){
				func() (*store.Store, error) { return storetest.OpenSQLite(t.Context(), s.path, "") },
				func() (*store.Store, error) { return storetest.CreateSQLite(t.Context(), s.path, "") },
			} {
				if _, err := open(); !errors.Is(err, damage.want) || strings.Contains(err.Error(), canary) {
					t.Errorf("open: error is %v, want %v", err, damage.want)
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
