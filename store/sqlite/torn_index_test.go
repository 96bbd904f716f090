package sqlite_test

import (
	"os"
	"testing"
	"time"
)

// A process that is descheduled while it writes the wal-index leaves it half written for a while. That is not damage,
// so readers retry.
func TestTornWALIndexIsReadAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.commit(t.Context(), "before"); err != nil {
		t.Fatal(err)
	}
	index, err := os.OpenFile(r.path+"-shm", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Closing it earlier would release the locks of SQLite.
	t.Cleanup(func() { _ = index.Close() })
	const inSecondCopy = 48 + 8
	whole := make([]byte, 4)
	if _, err := index.ReadAt(whole, inSecondCopy); err != nil {
		t.Fatal(err)
	}
	if _, err := index.WriteAt([]byte{whole[0] + 1}, inSecondCopy); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() {
		<-time.After(100 * time.Millisecond)
		_, err := index.WriteAt(whole, inSecondCopy)
		written <- err
	}()
	if err := r.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if err := r.commit(t.Context(), "after"); err != nil {
		t.Error(err)
	}
	r.close(t)
}
