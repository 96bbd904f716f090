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

// A server that was idle over several rotations takes a file without the keys that were retired meanwhile, its own among
// them. What they have sealed it refuses, and says where they are.
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
		t.Fatalf("retired are %v to %s, want two keys, and the file as it was", retired.IDs, retired.Kept)
	}
	if again := retire(t, path); len(again.IDs) > 0 || again.Kept != "" {
		t.Errorf("retired are %v once more", again.IDs)
	}
	after := current(t, server)
	if !after.Matches(fingerprint, []byte(canary)) {
		t.Error("a fingerprint of before does not match")
	}
	want := regexp.MustCompile(`the keyset lacks key [0-9]+ \(retired to keyset\.json\.retired-[0-9TZ]+\)$`)
	if _, err := after.Unseal(sealed, seal.Place{}); !errors.Is(err, seal.ErrDamaged) || !want.MatchString(err.Error()) {
		t.Errorf("error is %v, want ErrDamaged and where the key is", err)
	}
	// What was retired before stays known, also when more keys come and go.
	rotate(t, path)
	second := retire(t, path)
	if kept := current(t, server).RetiredTo(first.PrimaryID()); kept != filepath.Base(retired.Kept) {
		t.Errorf("the first key was retired to %q, want %q", kept, retired.Kept)
	}
	if second.Kept == retired.Kept {
		t.Error("a file that was kept is replaced")
	}
	// With the file of before in its place, the old keys are there again.
	replace(t, path, before)
	if _, err := server.Current(t.Context()); err == nil || !strings.Contains(err.Error(), "lacks keys that it had before") {
		t.Errorf("the newest key is missing: error is %v", err)
	}
	if secret, err := current(t, open(t, path)).Unseal(sealed, seal.Place{}); err != nil || secret.Reveal() != canary {
		t.Errorf("with the file that was kept: %v", err)
	}
}

// Where note refuses, or the file changes meanwhile, nothing is removed.
func TestRefusedRetirementLeavesTheFile(t *testing.T) {
	t.Parallel()
	errNote := errors.New("in use")
	for name, test := range map[string]struct {
		note func(path string) error
		want error
	}{
		"note": {func(string) error { return errNote }, errNote},
		"file changed": {func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, []byte(canary), 0o600))
		}, seal.ErrKeysetUnusable},
		"file is away": {os.Remove, os.ErrNotExist},
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
			t.Errorf("%s: error is %v, want %v, and the file as it was", name, err, test.want)
		}
	}
}
