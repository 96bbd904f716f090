package seal_test

import (
	"errors"
	"slices"
	"testing"

	"example.com/providerd/store/seal"
)

// Wrapped keys open with their master key, whichever is primary, for the database that they were wrapped for. Those of
// another database, or damaged ones, do not open.
func TestWrappedKeysBelongToTheirDatabase(t *testing.T) {
	t.Parallel()
	first, _ := newFile(t)
	second, err := first.WithNew()
	if err != nil {
		t.Fatal(err)
	}
	database, other, keys := []byte("database"), []byte("other"), newKeys(t, 1)[1]
	wrap := func(databaseID []byte) seal.Wrapped {
		wrapped, err := keys.Wrap(second, first.PrimaryID(), databaseID)
		if err != nil {
			t.Fatal(err)
		}
		return wrapped
	}
	good, foreign := wrap(database), wrap(other)
	for _, master := range []*seal.MasterKeys{first, second} {
		opened, err := good.Open(master, database)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(opened.IDs(), keys.IDs()) || opened.PrimaryID() != keys.PrimaryID() {
			t.Errorf("opened keys %v, want %v", opened.IDs(), keys.IDs())
		}
	}
	for name, bad := range map[string]seal.Wrapped{
		"none":                  {},
		"of another database":   foreign,
		"another's secrets":     {SecretKeys: foreign.SecretKeys, DigestKey: good.DigestKey},
		"another's digests":     {SecretKeys: good.SecretKeys, DigestKey: foreign.DigestKey},
		"damaged":               {SecretKeys: good.SecretKeys[:len(good.SecretKeys)-1], DigestKey: good.DigestKey},
		"in each other's place": {SecretKeys: good.DigestKey, DigestKey: good.SecretKeys},
	} {
		if _, err := bad.Open(first, database); !errors.Is(err, seal.ErrKeysetUnusable) {
			t.Errorf("%s: error is %v, want ErrKeysetUnusable", name, err)
		}
	}
}
