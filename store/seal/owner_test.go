package seal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store/durable/durabletest"
	"example.com/providerd/store/seal"
)

// someUser is one that no account needs to be of, and someGroup a group.
const someUser, someGroup = 1234, 2234

// A keyset that root makes belongs to the owner of its folder.
func TestNewKeysetOfRoot(t *testing.T) {
	t.Parallel()
	durabletest.DemandRoot(t)
	for name, provide := range map[string]func(path string) error{
		"provided": func(path string) error { _, err := seal.ProvideKeyring(t.Context(), path); return err },
		"created":  func(path string) error { _, err := seal.CreateKeyring(t.Context(), path); return err },
	} {
		folder := t.TempDir()
		path := filepath.Join(folder, name)
		if err := errors.Join(os.Chown(folder, someUser, someGroup), provide(path)); err != nil {
			t.Fatal(err)
		}
		durabletest.ExpectOwner(t, path, someUser, someGroup)
	}
}

// A keyset that root changes stays with its owner, be that in the folder of another user.
func TestChangedKeysetStaysWithItsOwner(t *testing.T) {
	t.Parallel()
	durabletest.DemandRoot(t)
	_, path := newRing(t)
	if err := os.Chown(path, someUser, someGroup); err != nil {
		t.Fatal(err)
	}
	rotate(t, path)
	durabletest.ExpectOwner(t, path, someUser, someGroup)
}

// Whoever puts a file of theirs in the place of a keyset while that is changed does not get its keys.
func TestChangedKeysetIsGivenToNobodyElse(t *testing.T) {
	t.Parallel()
	durabletest.DemandRoot(t)
	_, path := newRing(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Change(t.Context(), seal.Rotated, func(_ *seal.Keys, write func() error) error {
		planted := path + ".planted"
		return errors.Join(os.WriteFile(planted, make([]byte, info.Size()), 0o600), os.Chown(planted, someUser, someGroup),
			os.Chtimes(planted, info.ModTime(), info.ModTime()), os.Rename(planted, path), write())
	}); err != nil {
		t.Fatal(err)
	}
	durabletest.ExpectOwner(t, path, 0, 0)
}

// A file that gets the number of one that was removed, its size and its time, looks like the one that was read, but for
// its owner.
func TestChangedKeysetIsOfTheOwnerOfWhatWasRead(t *testing.T) {
	t.Parallel()
	durabletest.DemandRoot(t)
	_, path := newRing(t)
	ring := open(t, path)
	if err := os.Chown(path, someUser, someGroup); err != nil {
		t.Fatal(err)
	}
	err := ring.Change(t.Context(), seal.Rotated, func(_ *seal.Keys, write func() error) error { return write() })
	if err != nil {
		t.Fatal(err)
	}
	durabletest.ExpectOwner(t, path, 0, 0)
}
