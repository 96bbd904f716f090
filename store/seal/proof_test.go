package seal_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"example.com/providerd/store/seal"
)

// A fingerprint matches only its digest. Rotations keep the fingerprint keys, because fingerprints cannot be computed
// again.
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
			t.Error("it matches with the keys of another file")
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

// A proof is satisfied by the keys that made it and by those after later rotations. It has two halves, so that a file
// assembled from two keysets is detected.
func TestProofIsSatisfiedBySuccessors(t *testing.T) {
	t.Parallel()
	keys, other := newKeys(t, 2), newKeys(t, 0)[0]
	foreign, err := other.Prove()
	if err != nil {
		t.Fatal(err)
	}
	for made, maker := range keys {
		proof, err := maker.Prove()
		if err != nil {
			t.Fatal(err)
		}
		for checked, checker := range keys {
			if got, want := checker.Satisfies(proof), checked >= made; got != want {
				t.Errorf("proof after %d rotations, keys after %d: %t, want %t", made, checked, got, want)
			}
		}
		for name, mixed := range map[string]seal.Proof{
			"none": {}, "foreign": foreign,
			"sealed":      {Sealed: foreign.Sealed, Fingerprint: proof.Fingerprint},
			"fingerprint": {Sealed: proof.Sealed, Fingerprint: foreign.Fingerprint},
		} {
			if maker.Satisfies(mixed) {
				t.Errorf("%s: the keys after %d rotations satisfy it", name, made)
			}
		}
	}
}
