package seal_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store/durable/durabletest"
	"example.com/providerd/store/seal"
)

// someUser is one that no account needs to be of, and someGroup a group.
const someUser, someGroup = 1234, 2234

// A keyset that root makes belongs to the owner of its directory. One that root changes stays with its owner, be that in the
// directory of another user, but is not given to who got it since it was read: a file that gets the number of one that was
// removed, its size and its time, looks the same, but for its owner.
func TestKeysetsOfRootBelongToTheirOwners(t *testing.T) {
	t.Parallel()
	durabletest.RequireRoot(t)
	for _, provide := range []func(ctx context.Context, path string) (*seal.Keyring, error){
		seal.OpenOrCreateKeyring, seal.CreateKeyring,
	} {
		path := filepath.Join(t.TempDir(), "keyset.json")
		if err := os.Chown(filepath.Dir(path), someUser, someGroup); err != nil {
			t.Fatal(err)
		}
		if _, err := provide(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		durabletest.ExpectOwner(t, path, someUser, someGroup)
		ring := open(t, path)
		if err := os.Chown(path, someUser+1, someGroup+1); err != nil {
			t.Fatal(err)
		}
		rotate(t, path)
		durabletest.ExpectOwner(t, path, someUser+1, someGroup+1)
		current(t, ring)
		if err := os.Chown(path, someUser, someGroup); err != nil {
			t.Fatal(err)
		}
		err := ring.Change(t.Context(), seal.RotateKey, func(_ *seal.Keys, write func() error) error { return write() })
		if err != nil {
			t.Fatal(err)
		}
		durabletest.ExpectOwner(t, path, someUser+1, someGroup+1)
	}
}

// Whoever puts a file of theirs in the place of a keyset while that is changed does not get its keys.
func TestChangedKeysetIsGivenToNobodyElse(t *testing.T) {
	t.Parallel()
	durabletest.RequireRoot(t)
	_, path := newRing(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Change(t.Context(), seal.RotateKey, func(_ *seal.Keys, write func() error) error {
		planted := path + ".planted"
		return errors.Join(os.WriteFile(planted, make([]byte, info.Size()), 0o600), os.Chown(planted, someUser, someGroup),
			os.Chtimes(planted, info.ModTime(), info.ModTime()), os.Rename(planted, path), write())
	}); err != nil {
		t.Fatal(err)
	}
	durabletest.ExpectOwner(t, path, 0, 0)
}
