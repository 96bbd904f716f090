package command

import (
	"net/http"
	"strings"
	"testing"
)

// Whoever asks for profiles cannot make them long.
func TestProfilesAreBounded(t *testing.T) {
	t.Parallel()
	_, ops := startWatched(t, t.TempDir())
	for query, want := range map[string]int{
		"profile?seconds=61": http.StatusBadRequest, "trace?seconds=1e9": http.StatusBadRequest,
		"trace?seconds=-1": http.StatusBadRequest, "heap?seconds=x": http.StatusBadRequest, "trace?seconds=NaN": http.StatusBadRequest,
		"heap?seconds=1": http.StatusOK, "profile?seconds=1": http.StatusOK,
	} {
		if status, text := get(t, ops+"/debug/pprof/"+query); status != want {
			t.Errorf("%s: status is %d, want %d: %s", query, status, want, text)
		}
	}
	if status, text := get(t, ops+"/debug/pprof/trace?seconds=0.1"); status != http.StatusOK || !strings.HasPrefix(text, "go 1.") {
		t.Errorf("status is %d: %.100q", status, text)
	}
}

func TestLongTracesEnd(t *testing.T) {
	t.Parallel()
	ended := 0
	collected := &boundedTrace{end: func() { ended++ }}
	const part = 1 << 20
	for range maxTrace/part + 1 {
		if _, err := collected.Write(make([]byte, part)); err != nil || ended > 0 {
			t.Fatal(err, ended)
		}
	}
	if _, err := collected.Write([]byte("end")); err != nil || ended != 1 || collected.Len() != maxTrace+part+len("end") {
		t.Errorf("%d bytes are kept, ended %d times, %v", collected.Len(), ended, err)
	}
}
