package seal_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/providerd/store/seal"
)

// texts are secrets with arbitrary bytes, not only valid UTF-8.
func texts() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOf(rapid.Byte()), func(text []byte) string { return string(text) })
}

// names are names of values, rows and places.
func names() *rapid.Generator[string] { return rapid.StringMatching(`[a-z][a-z0-9_]{0,20}`) }

func places() *rapid.Generator[seal.Place] {
	return rapid.Custom(func(t *rapid.T) seal.Place {
		return seal.Place{Row: names().Draw(t, "row"), Value: names().Draw(t, "value"), Name: names().Draw(t, "name")}
	})
}

// A secret is unsealed with the keys from when it was sealed and with later ones. The prefix of the ciphertext
// identifies its key.
func TestUnseal(t *testing.T) {
	t.Parallel()
	const rotations = 3
	keys := newKeys(t, rotations)
	prefixes := map[string]int{}
	for i := range keys {
		prefixes[string(seal.Prefix(keys[i].PrimaryID()))] = i
	}
	rapid.Check(t, func(t *rapid.T) {
		text, at := texts().Draw(t, "text"), places().Draw(t, "at")
		sealedBy := rapid.IntRange(0, rotations).Draw(t, "sealed by")
		readBy := rapid.IntRange(sealedBy, rotations).Draw(t, "read by")
		sealed, err := keys[sealedBy].Seal(seal.NewSecret(text), at)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := keys[readBy].Unseal(sealed, at)
		if err != nil || secret.Reveal() != text {
			t.Fatalf("%q was sealed, %q read, %v", text, secret.Reveal(), err)
		}
		if by, ok := prefixes[string(sealed[:5])]; !ok || by != sealedBy {
			t.Fatalf("%x does not begin with the prefix of its key", sealed)
		}
		again, err := keys[sealedBy].Seal(seal.NewSecret(text), at)
		if err != nil || bytes.Equal(again, sealed) {
			t.Fatalf("two ciphertexts of one secret are the same, %v", err)
		}
	})
}

// Unsealing an altered ciphertext, or one for another place or with other keys, fails with an error that names the
// place and reveals nothing of the text.
func TestAlteredSecretIsDamaged(t *testing.T) {
	t.Parallel()
	own, other := newKeys(t, 1), newKeys(t, 0)[0]
	rapid.Check(t, func(t *rapid.T) {
		keys, at := own[0], places().Draw(t, "at")
		sealed, err := keys.Seal(seal.NewSecret(canary+texts().Draw(t, "text")), at)
		if err != nil || bytes.Contains(sealed, []byte(canary)) {
			t.Fatalf("sealed is %q, %v", sealed, err)
		}
		index := rapid.IntRange(0, len(sealed)-1).Draw(t, "index")
		unlike := func(name string) string {
			return names().Filter(func(drawn string) bool { return drawn != name }).Draw(t, "other")
		}
		switch rapid.SampledFrom(strings.Fields("bit cut insert rubbish row value keys older")).Draw(t, "change") {
		case "bit":
			sealed[index] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case "cut":
			sealed = slices.Delete(sealed, index, rapid.IntRange(index+1, len(sealed)).Draw(t, "to"))
		case "insert":
			sealed = slices.Insert(sealed, index, sealed[index]+1)
		case "rubbish":
			sealed = rapid.SliceOf(rapid.Byte()).Draw(t, "rubbish")
		case "row":
			at.Row = unlike(at.Row)
		case "value":
			at.Value = unlike(at.Value)
		case "keys":
			keys = other
		case "older":
			if sealed, err = own[1].Seal(seal.NewSecret(canary), at); err != nil {
				t.Fatal(err)
			}
		}
		secret, err := keys.Unseal(sealed, at)
		if !errors.Is(err, seal.ErrDamaged) || secret.Reveal() != "" {
			t.Fatalf("error is %v, want ErrDamaged; secret is %q", err, secret.Reveal())
		}
		if !strings.Contains(err.Error(), at.String()) || strings.Contains(err.Error(), canary) {
			t.Fatalf("error is %v, want one that names %s", err, at)
		}
	})
}
