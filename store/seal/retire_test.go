package seal_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/providerd/store/seal"
)

// retire removes old keys from the file.
func retire(t *testing.T, path string) seal.Retirement {
	t.Helper()
	retired, err := open(t, path).Retire(t.Context(), func(*seal.Keys) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return retired
}

// A server that was idle during several rotations accepts a file without the keys retired meanwhile, including its own.
// It refuses what they sealed, and its error says where they are.
func TestRetiredKeysMayBeMissing(t *testing.T) {
	t.Parallel()
	server, path := newRing(t)
	first := current(t, server)
	sealed, err := first.Seal(seal.NewSecret(canary), seal.Place{})
	if err != nil {
		t.Fatal(err)
	}
	fingerprint, err := first.Fingerprint([]byte(canary))
	if err != nil {
		t.Fatal(err)
	}
	rotate(t, path)
	rotate(t, path)
	before := read(t, path)
	retired := retire(t, path)
	if len(retired.IDs) != 2 || retired.IDs[0] != first.PrimaryID() || read(t, retired.Kept) != before {
		t.Fatalf("retired %v to %s, want two keys and an unchanged file", retired.IDs, retired.Kept)
	}
	if again := retire(t, path); len(again.IDs) > 0 || again.Kept != "" {
		t.Errorf("retired %v again", again.IDs)
	}
	after := current(t, server)
	if !after.Matches(fingerprint, []byte(canary)) {
		t.Error("a fingerprint from before the retirement does not match")
	}
	want := regexp.MustCompile(`the keyset lacks key [0-9]+ \(retired to keyset\.json\.retired-[0-9TZ]+\)$`)
	if _, err := after.Unseal(sealed, seal.Place{}); !errors.Is(err, seal.ErrDamaged) || !want.MatchString(err.Error()) {
		t.Errorf("error is %v, want ErrDamaged and where the key is", err)
	}
	// Retired keys stay known when more keys are added and retired.
	rotate(t, path)
	second := retire(t, path)
	if kept := current(t, server).RetiredTo(first.PrimaryID()); kept != filepath.Base(retired.Kept) {
		t.Errorf("the first key was retired to %q, want %q", kept, retired.Kept)
	}
	if second.Kept == retired.Kept {
		t.Error("a kept file was replaced")
	}
	// Putting the previous file back brings back the old keys.
	replace(t, path, before)
	if _, err := server.Current(t.Context()); err == nil || !strings.Contains(err.Error(), "lacks keys that it had before") {
		t.Errorf("the newest key is missing: error is %v", err)
	}
	if secret, err := current(t, open(t, path)).Unseal(sealed, seal.Place{}); err != nil || secret.Reveal() != canary {
		t.Errorf("with the file that was kept: %v", err)
	}
}

// If record fails or the file changes meanwhile, nothing is removed.
func TestFailedRetirementLeavesFile(t *testing.T) {
	t.Parallel()
	errRecord := errors.New("in use")
	for name, test := range map[string]struct {
		note func(path string) error
		want error
	}{
		"record": {func(string) error { return errRecord }, errRecord},
		"file changed": {func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte(canary), 0o600))
		}, seal.ErrKeysetUnusable},
		"missing file": {os.Remove, os.ErrNotExist},
	} {
		ring, path := newRing(t)
		rotate(t, path)
		noted := ""
		_, err := ring.Retire(t.Context(), func(*seal.Keys) error {
			err := test.note(path)
			content, _ := os.ReadFile(path)
			noted = string(content)
			return err
		})
		content, _ := os.ReadFile(path)
		if !errors.Is(err, test.want) || string(content) != noted {
			t.Errorf("%s: error is %v, want %v, and the file unchanged", name, err, test.want)
		}
	}
}
