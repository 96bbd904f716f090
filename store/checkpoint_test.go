package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// However long creates go on without a pause, the log does not grow with them.
func TestLogIsBoundedUnderLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	database := create(t, path)
	const callers, each, most = 64, 300, 200 << 20
	large := strings.Repeat("x", 3<<10)
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range each {
				if err := database.Submit(t.Context(), fmt.Sprintf("%d of %d: %s", i, caller, large)).Wait(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	log, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("after %d creates the log has %d bytes, the database %d", callers*each, log.Size(), content.Size())
	if log.Size() > most || content.Size() < 1<<20 {
		t.Errorf("the log has %d bytes, the database %d", log.Size(), content.Size())
	}
}
