package server_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestWaitingCreatesHoldNoBodies locks the database while large creates wait for it. They must hold their records, the
// sealed secret included, but neither their bodies nor what was read of them. It is not parallel, because other tests
// would change the heap.
func TestWaitingCreatesHoldNoBodies(t *testing.T) {
	const waiting, room = 6, 1 << 19
	list := strings.Repeat(`,"`+flow+`"`, 26_000)[1:]
	for name, c := range map[string]struct {
		path, body string
		// perCreate is the memory of a record in bytes: of its strings, or of its ids and their text.
		perCreate int
	}{
		"a string":       {oauth2Path, oauth2With(`"redirect_uris":"https://a.example.com/` + strings.Repeat("x", 1_000_000) + `"`), 1_000_000},
		"a list":         {oauth2Path, oauth2With(`"property_mappings":[` + list + `]`), 26_000*16 + len(list)},
		"an object":      {workspaceDirectoryPath, largestBody("x"), 2 << 20},
		"a small object": {workspaceDirectoryPath, strings.Repeat(" ", 800_000) + directoryWith(`{"a":"`+strings.Repeat("x", 200_000)+`"}`), 400_000},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			h.post(t, c.path, c.body).record(t)
			unlock := h.lock(t)
			before := heap()
			var group sync.WaitGroup
			for range waiting {
				group.Go(func() { h.post(t, c.path, c.body) })
			}
			// One of them is inserted, and the others are in the queue.
			for begun := time.Now(); h.database.Stats().QueueLength < waiting-1; runtime.Gosched() {
				if time.Since(begun) > time.Minute {
					t.Fatal("they do not wait")
				}
			}
			grown := heap() - before
			unlock()
			group.Wait()
			if grown > waiting*(c.perCreate+c.perCreate/8)+room {
				t.Errorf("%d creates hold %d bytes, %.2f times their records", waiting, grown,
					float64(grown)/float64(waiting*c.perCreate))
			}
		})
	}
}

// heap returns the size of what is in use.
func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
