package seal_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/providerd/store/seal"
)

// A running server uses a new key, however the operator replaces the file.
func TestChangedFileIsNoticed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path, content string) error{
		"replaced": func(path, content string) error {
			return errors.Join(os.WriteFile(path+".new", []byte(content), 0o600), os.Rename(path+".new", path))
		},
		"written in place": func(path, content string) error { return os.WriteFile(path, []byte(content), 0o600) },
		// This simulates a file system with coarse timestamps, or a copy that preserves them.
		"written in place, with the same time": func(path, content string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		"a link to another": func(path, content string) error {
			return errors.Join(os.WriteFile(path+".new", []byte(content), 0o600), os.Remove(path), os.Symlink(path+".new", path))
		},
	} {
		ring, path := newRing(t)
		before, copied := current(t, ring), filepath.Join(t.TempDir(), "copy.json")
		if current(t, ring) != before {
			t.Errorf("%s: the file is read again though it has not changed", name)
		}
		replace(t, copied, read(t, path))
		rotate(t, copied)
		if err := change(path, read(t, copied)); err != nil {
			t.Fatal(err)
		}
		if id, want := current(t, ring).PrimaryID(), current(t, open(t, copied)).PrimaryID(); id != want {
			t.Errorf("%s: the primary key is %d, want %d", name, id, want)
		}
	}
}

// keysetParts are the two keysets of a file.
type keysetParts struct {
	Sealing      json.RawMessage `json:"sealing"`
	Fingerprints json.RawMessage `json:"fingerprints"`
}

func parts(t *testing.T, content string) (parts keysetParts) {
	t.Helper()
	if err := json.Unmarshal([]byte(content), &parts); err != nil {
		t.Fatal(err)
	}
	return parts
}

func (p keysetParts) text(t *testing.T) string {
	t.Helper()
	content, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// A file without keys that were just used is rejected until they are put back. Until then, nothing is sealed, because
// the keys would not be on disk.
func TestKeysetMissingKeysIsRejected(t *testing.T) {
	t.Parallel()
	ring, path := newRing(t)
	backup := read(t, path)
	rotate(t, path)
	proof, err := current(t, ring).Prove()
	if err != nil {
		t.Fatal(err)
	}
	good := read(t, path)
	_, otherPath := newRing(t)
	other := read(t, otherPath)
	for name, content := range map[string]string{
		"another's":              other,
		"older backup":           backup,
		"another's sealing":      keysetParts{parts(t, other).Sealing, parts(t, good).Fingerprints}.text(t),
		"another's fingerprints": keysetParts{parts(t, good).Sealing, parts(t, other).Fingerprints}.text(t),
	} {
		replace(t, path, content)
		keys, err := ring.Current(t.Context())
		if keys != nil || !errors.Is(err, seal.ErrKeysetUnusable) {
			t.Fatalf("%s: error is %v, want ErrKeysetUnusable", name, err)
		}
		if !strings.Contains(err.Error(), path+" lacks keys that it had before; put them back") {
			t.Errorf("%s: error is %v", name, err)
		}
		replace(t, path, good)
		if !current(t, ring).Satisfies(proof) {
			t.Errorf("%s: put back, the file has other keys", name)
		}
	}
}

// While a changed file is being read, callers wait no longer than their contexts allow, and do not get the previous
// keys. If it has not changed, nobody waits.
func TestReloadDoesNotBlockForLong(t *testing.T) {
	t.Parallel()
	ring, path := newRing(t)
	before := current(t, ring)
	release := ring.HoldReading()
	if current(t, ring) != before {
		t.Error("the file is read again though it has not changed")
	}
	rotate(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := ring.Current(ctx); !errors.Is(err, seal.ErrKeysetUnusable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want ErrKeysetUnusable and context.DeadlineExceeded", err)
	}
	release()
	if current(t, ring) == before {
		t.Error("the file is not read")
	}
}

// A server reads a keyset of many keys again with work for each key, and not for each pair.
//
//nolint:paralleltest // It counts what the whole program allocates.
func TestReloadIsLinear(t *testing.T) {
	allocations := func(count int) float64 {
		ring, path := newRing(t)
		if err := open(t, path).Change(t.Context(), func(keys *seal.Keys) (_ *seal.Keys, err error) {
			for range count - 1 {
				if keys, err = seal.RotateKey(keys); err != nil {
					return nil, err
				}
			}
			return keys, nil
		}, writing); err != nil {
			t.Fatal(err)
		}
		current(t, ring)
		return testing.AllocsPerRun(5, func() {
			rotate(t, path)
			current(t, ring)
		})
	}
	const few, factor = 50, 4
	if less, more := allocations(few), allocations(factor*few); more > 1.5*factor*less {
		t.Errorf("%d keys take %.0f allocations, and %d of them %.0f", few, less, factor*few, more)
	}
}
