package serving_test

import (
	"net/http"
	"strings"
	"testing"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// TestProfilesAreBounded requests profiles that are too long.
func TestProfilesAreBounded(t *testing.T) {
	t.Parallel()
	_, ops := providerdtest.ServeWithOps(t, t.TempDir())
	for query, want := range map[string]int{
		"profile?seconds=61": http.StatusBadRequest, "trace?seconds=1e9": http.StatusBadRequest,
		"trace?seconds=-1": http.StatusBadRequest, "heap?seconds=x": http.StatusBadRequest, "trace?seconds=NaN": http.StatusBadRequest,
		"heap?seconds=1": http.StatusOK, "profile?seconds=1": http.StatusOK,
	} {
		if status, text := providerdtest.Get(t, ops+"/debug/pprof/"+query); status != want {
			t.Errorf("%s: status is %d, want %d: %s", query, status, want, text)
		}
	}
	if status, text := providerdtest.Get(t, ops+"/debug/pprof/trace?seconds=0.1"); status != http.StatusOK || !strings.HasPrefix(text, "go 1.") {
		t.Errorf("status is %d: %.100q", status, text)
	}
}
