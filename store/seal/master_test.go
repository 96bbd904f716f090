package seal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"example.com/providerd/store/files"
	"example.com/providerd/store/seal"
)

// expectRefused reads a file in every way, which must fail with an error that matches a pattern.
func expectRefused(t *testing.T, path, name, pattern string) {
	t.Helper()
	_, read := seal.ReadMasterKeys(path)
	_, provided := seal.ReadOrCreateMasterKeys(path)
	for _, err := range []error{read, provided} {
		if !errors.Is(err, seal.ErrKeysetUnusable) || !regexp.MustCompile(pattern).MatchString(err.Error()) {
			t.Errorf("%s: error is %v, want ErrKeysetUnusable and %q", name, err, pattern)
		}
	}
}

// Anything else at the path of a keyset is rejected at once and never replaced.
func TestNonKeysetFileIsRejected(t *testing.T) {
	t.Parallel()
	large := strings.Repeat(" ", 1<<20)
	for name, test := range map[string]struct {
		put  func(path, good string) error
		hint string
	}{
		"readable by the group": {func(path, _ string) error { return os.Chmod(path, 0o640) }, "run chmod 600"},
		"readable by others":    {func(path, _ string) error { return os.Chmod(path, 0o604) }, "run chmod 600"},
		"writable by others":    {func(path, _ string) error { return os.Chmod(path, 0o602) }, "run chmod 600"},
		"FIFO":                  {func(path, _ string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, "restore the right one"},
		"directory":             {func(path, _ string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "restore the right one"},
		"device":                {func(path, _ string) error { return errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)) }, "restore the right one"},
		"link to itself":        {func(path, _ string) error { return errors.Join(os.Remove(path), os.Symlink(path, path)) }, "too many levels"},
		"too large":             {func(path, good string) error { return os.WriteFile(path, []byte(good+large), 0o600) }, "more than 1048576 bytes.*restore the right one"},
	} {
		master, path := newFile(t)
		good := read(t, path)
		if err := test.put(path, good); err != nil {
			t.Fatal(err)
		}
		expectRefused(t, path, name, "^keyset cannot be used: .*"+regexp.QuoteMeta(path)+".*"+test.hint)
		if err := master.Create(path, files.Owner{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: created: error is %v, want ErrExist", name, err)
		}
		replace(t, path, good+large[len(good):])
		if _, err := seal.ReadMasterKeys(path); err != nil {
			t.Errorf("put back: %v", err)
		}
	}
}

// unfit returns invalid variants of a keyset file, with a canary if possible.
func unfit(good string) map[string]string {
	replaced := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	return map[string]string{
		"empty":               good[:0],
		"text":                canary,
		"null":                "null",
		"list":                `["` + canary + `"]`,
		"truncated":           good[:len(good)/2],
		"twice":               good + good,
		"unknown field":       replaced("primaryKeyId", canary),
		"unknown status":      replaced("ENABLED", canary),
		"disabled":            replaced("ENABLED", "DISABLED"),
		"no such primary":     replaced(`"primaryKeyId":`, `"primaryKeyId":1`),
		"invalid key":         replaced(`"value":"`, `"value":"`+strings.Repeat("canary7e", 4)),
		"invalid base64":      replaced(`"value":"`, `"value":"`+canary+"!"),
		"unknown kind of key": replaced("google.crypto.tink.AesGcmKey", canary),
		"remote key":          replaced("AesGcmKey", "KmsAeadKey"),
	}
}

// refusal matches errors that quote nothing of the file.
func refusal(path string) string {
	return "^keyset cannot be used: " + regexp.QuoteMeta(path) +
		" is not a Tink keyset of AEAD keys; restore the right one$"
}

func TestInvalidContentIsRejectedAndNotQuoted(t *testing.T) {
	t.Parallel()
	_, path := newFile(t)
	for name, content := range unfit(read(t, path)) {
		replace(t, path, content)
		expectRefused(t, path, name, refusal(path))
		if read(t, path) != content {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

// Reading any content neither panics nor quotes it, and the keys of a valid file can be used.
func FuzzKeyset(f *testing.F) {
	_, path := newFile(f)
	good := read(f, path)
	f.Add([]byte(good))
	for _, content := range unfit(good) {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "keyset.json")
		replace(t, path, string(content))
		master, err := seal.ReadMasterKeys(path)
		if err != nil {
			expectRefused(t, path, "fuzz", refusal(path))
			return
		}
		wrapped, err := newKeys(t, 0)[0].Wrap(master, master.PrimaryID(), nil)
		if err == nil {
			_, err = wrapped.Open(master, nil)
		}
		if err != nil {
			t.Error(err)
		}
	})
}
