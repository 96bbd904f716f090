package seal_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"example.com/providerd/store/seal"
)

// grow writes a keyset file with so many keys.
func grow(t testing.TB, path string, count int) {
	t.Helper()
	many := func(keys *seal.Keys) (_ *seal.Keys, err error) {
		for range count - 1 {
			if keys, err = seal.RotateKey(keys); err != nil {
				return nil, err
			}
		}
		return keys, nil
	}
	ring, err := seal.OpenOrCreateKeyring(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.Change(t.Context(), many, func(_ *seal.Keys, write func() error) error { return write() }); err != nil {
		t.Fatal(err)
	}
}

// A server reads a keyset of many keys again with work for each key, and not for each pair.
//
//nolint:paralleltest // It counts what the whole program allocates.
func TestReloadIsLinear(t *testing.T) {
	allocations := func(count int) float64 {
		ring, path := newRing(t)
		grow(t, path, count)
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

func BenchmarkReload(b *testing.B) {
	for _, count := range []int{100, 400, 1600} {
		b.Run(fmt.Sprintf("keys=%d", count), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "keyset.json")
			grow(b, path, count)
			for b.Loop() {
				b.StopTimer()
				ring, err := seal.OpenKeyring(path)
				if err != nil {
					b.Fatal(err)
				}
				if err := open(b, path).Change(b.Context(), seal.RotateKey, func(_ *seal.Keys, write func() error) error { return write() }); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if _, err := ring.Current(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
