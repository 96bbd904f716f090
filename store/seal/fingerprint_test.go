package seal_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// A fingerprint matches only its digest. Rotations keep the key of fingerprints, because they cannot be computed again.
func TestFingerprintMatchesOnlyItsDigest(t *testing.T) {
	t.Parallel()
	const rotations = 2
	keys, other := newKeys(t, rotations), newKeys(t, 0)[0]
	digests := rapid.SliceOfN(rapid.Byte(), 0, 32)
	rapid.Check(t, func(t *rapid.T) {
		maker := keys[rapid.IntRange(0, rotations).Draw(t, "maker")]
		checker := keys[rapid.IntRange(0, rotations).Draw(t, "checker")]
		digest, second := digests.Draw(t, "digest"), digests.Draw(t, "second")
		fingerprint, err := maker.Fingerprint(digest)
		if err != nil {
			t.Fatal(err)
		}
		if !checker.Matches(fingerprint, digest) {
			t.Error("it does not match its digest")
		}
		if checker.Matches(fingerprint, second) != bytes.Equal(digest, second) {
			t.Errorf("whether it matches %x as well as %x is wrong", second, digest)
		}
		if other.Matches(fingerprint, digest) {
			t.Error("it matches with other keys")
		}
		index := rapid.IntRange(0, len(fingerprint)-1).Draw(t, "index")
		if checker.Matches(fingerprint[:index], digest) {
			t.Error("it matches when cut off")
		}
		fingerprint[index] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if checker.Matches(fingerprint, digest) {
			t.Error("it matches when altered")
		}
	})
}
