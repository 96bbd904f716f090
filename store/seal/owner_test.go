package seal_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest/processtest"
)

// someUser and someGroup need not exist.
const someUser, someGroup = 1234, 2234

// A keyset that root creates belongs to the owner of its directory. A keyset that root changes keeps its owner, even in
// the directory of another user, but does not go to a user who has put another file there since it was read: a file
// that reuses the inode, size and time of a removed one differs only in its owner.
func TestRootKeysetsBelongToTheirOwners(t *testing.T) {
	t.Parallel()
	processtest.NeedRoot(t)
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
		processtest.ExpectOwner(t, path, someUser, someGroup)
		ring := open(t, path)
		if err := os.Chown(path, someUser+1, someGroup+1); err != nil {
			t.Fatal(err)
		}
		rotate(t, path)
		processtest.ExpectOwner(t, path, someUser+1, someGroup+1)
		current(t, ring)
		if err := os.Chown(path, someUser, someGroup); err != nil {
			t.Fatal(err)
		}
		err := ring.Change(t.Context(), seal.RotateKey, writing)
		if err != nil {
			t.Fatal(err)
		}
		processtest.ExpectOwner(t, path, someUser+1, someGroup+1)
	}
}

// A user who replaces the keyset while it is being changed does not get its keys.
func TestChangedKeysetStaysWithItsOwner(t *testing.T) {
	t.Parallel()
	processtest.NeedRoot(t)
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
	processtest.ExpectOwner(t, path, 0, 0)
}
