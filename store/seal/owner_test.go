package seal_test

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/providerd/store/seal"
	"example.com/providerd/store/storetest/processtest"
)

// A keyset that root creates belongs to the owner of its directory. A user who plants a link to a file of root in its
// place does not get that file.
func TestRootKeysetsBelongToTheirOwners(t *testing.T) {
	t.Parallel()
	processtest.NeedRoot(t)
	const someUser, someGroup = 1234, 2234
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "keyset.json")
	if _, err := seal.ReadOrCreateMasterKeys(elsewhere); err != nil {
		t.Fatal(err)
	}
	path, link := filepath.Join(dir, "keyset.json"), filepath.Join(dir, "link.json")
	processtest.Must(t, os.Chown(dir, someUser, someGroup), os.Symlink(elsewhere, link))
	for _, path := range []string{path, link} {
		if _, err := seal.ReadOrCreateMasterKeys(path); err != nil {
			t.Error(err)
		}
	}
	processtest.ExpectOwner(t, path, someUser, someGroup)
	processtest.ExpectOwner(t, elsewhere, 0, 0)
}
