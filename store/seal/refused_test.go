package seal_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/seal"
)

// maxKeysetBytes is the maximum size of a keyset file.
const maxKeysetBytes = 1 << 20

// expectRefused opens a file in every way, which must fail with an error that contains the path and a hint.
func expectRefused(t *testing.T, running *seal.Keyring, path, name, hint string) {
	t.Helper()
	_, opened := seal.OpenKeyring(path)
	_, provided := seal.OpenOrCreateKeyring(t.Context(), path)
	_, current := running.Current(t.Context())
	rotated := running.Change(t.Context(), seal.RotateKey, func(*seal.Keys, func() error) error {
		t.Error("rotated")
		return nil
	})
	want := regexp.MustCompile("^keyset cannot be used: .*" + regexp.QuoteMeta(path) + ".*" + hint)
	for _, err := range []error{opened, provided, current, rotated} {
		if !errors.Is(err, seal.ErrKeysetUnusable) || !want.MatchString(err.Error()) {
			t.Errorf("%s: error is %v, want ErrKeysetUnusable, its path and %q", name, err, hint)
		}
	}
}

// Anything else at the path of a keyset is rejected at once and never replaced. A running server recovers when the
// keyset is put back.
func TestNonKeysetFileIsRejected(t *testing.T) {
	t.Parallel()
	large := strings.Repeat(" ", maxKeysetBytes)
	for name, test := range map[string]struct {
		put  func(path, good string) error
		hint string
	}{
		"readable by the group": {func(path, _ string) error { return os.Chmod(path, 0o640) }, "run chmod 600"},
		"readable by others":    {func(path, _ string) error { return os.Chmod(path, 0o604) }, "run chmod 600"},
		"writable by others":    {func(path, _ string) error { return os.Chmod(path, 0o602) }, "run chmod 600"},
		"FIFO":                  {func(path, _ string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, "put the right one"},
		"directory":             {func(path, _ string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "put the right one"},
		"device":                {func(path, _ string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) }, "put the right one"},
		"link to itself":        {func(path, _ string) error { return errors.Join(os.Remove(path), os.Symlink(path, path)) }, "too many levels"},
		"too large":             {func(path, good string) error { return os.WriteFile(path, []byte(good+large), 0o600) }, "more than 1048576 bytes.*put the right one"},
	} {
		ring, path := newRing(t)
		good := read(t, path)
		if err := test.put(path, good); err != nil {
			t.Fatal(err)
		}
		expectRefused(t, ring, path, name, test.hint)
		replace(t, path, good+large[len(good):])
		current(t, ring)
	}
}

// unfit returns invalid variants of a keyset file, with a canary if possible.
func unfit(good string) map[string]string {
	replaced := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	return map[string]string{
		"empty":                good[:0],
		"text":                 canary,
		"null":                 "null",
		"list":                 `["` + canary + `"]`,
		"truncated":            good[:len(good)/2],
		"twice":                good + good,
		"text for a keyset":    `{"sealing": "` + canary + `", "fingerprints": "` + canary + `"}`,
		"unknown field":        replaced("primaryKeyId", canary),
		"unknown status":       replaced("ENABLED", canary),
		"disabled":             replaced("ENABLED", "DISABLED"),
		"no such primary":      replaced(`"primaryKeyId": `, `"primaryKeyId": 1`),
		"no fingerprints":      replaced("fingerprints", canary),
		"kinds swapped":        strings.NewReplacer("sealing", "fingerprints", "fingerprints", "sealing").Replace(good),
		"invalid key":          replaced(`"value": "`, `"value": "`+strings.Repeat("canary7e", 4)),
		"invalid base64":       replaced(`"value": "`, `"value": "`+canary+"!"),
		"unknown kind of key":  replaced("google.crypto.tink.AesGcmKey", canary),
		"unknown kind of HMAC": replaced("google.crypto.tink.HmacKey", canary),
		"remote key":           replaced("AesGcmKey", "KmsAeadKey"),
	}
}

// refusal matches errors that quote nothing of the file.
func refusal(path string) *regexp.Regexp {
	return regexp.MustCompile(`^keyset cannot be used: ` + regexp.QuoteMeta(path) +
		`: (it is not a JSON object|"(sealing|fingerprints)" is not a Tink keyset|its keys are not AEAD keys for sealing and MAC keys for fingerprints); put the right one in its place$`)
}

func TestInvalidContentIsRejectedAndNotQuoted(t *testing.T) {
	t.Parallel()
	ring, path := newRing(t)
	good := read(t, path)
	for name, content := range unfit(good) {
		replace(t, path, content)
		for range 2 {
			if _, err := ring.Current(t.Context()); !errors.Is(err, seal.ErrKeysetUnusable) || !refusal(path).MatchString(err.Error()) {
				t.Errorf("%s: error is %v", name, err)
			}
		}
		if _, err := seal.OpenOrCreateKeyring(t.Context(), path); !errors.Is(err, seal.ErrKeysetUnusable) || read(t, path) != content {
			t.Errorf("%s: opened or created: error is %v, want ErrKeysetUnusable, and the file unchanged", name, err)
		}
	}
	replace(t, path, good)
	current(t, ring)
}

// Reading any content neither panics nor quotes it, and the keys of a valid file can be used.
func FuzzKeyset(f *testing.F) {
	path := filepath.Join(f.TempDir(), "keyset.json")
	if _, err := seal.OpenOrCreateKeyring(f.Context(), path); err != nil {
		f.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for _, content := range unfit(string(good)) {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		replace(t, path, string(content))
		ring, err := seal.OpenKeyring(path)
		if err != nil {
			if !errors.Is(err, seal.ErrKeysetUnusable) || !refusal(path).MatchString(err.Error()) {
				t.Errorf("error is %v", err)
			}
			return
		}
		if proof, err := current(t, ring).Prove(); err != nil || !current(t, ring).Satisfies(proof) {
			t.Errorf("the keys do not satisfy their own proof, %v", err)
		}
	})
}
