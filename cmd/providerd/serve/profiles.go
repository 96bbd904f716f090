package serve

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"runtime/trace"
	"strconv"
	"time"

	"example.com/providerd/server/listener"
)

const (
	maxProfileSeconds = 60
	// maxTrace is the size in bytes at which an execution trace is ended early.
	maxTrace = 16 << 20
)

// newProfiles serves /debug/pprof/, except for profiles that would take too long, and for the command line.
func newProfiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", serveTrace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := profileLength(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// profileLength returns the seconds of a request, by default one.
func profileLength(r *http.Request) (time.Duration, error) {
	text := r.FormValue("seconds")
	if text == "" {
		return time.Second, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0 && seconds <= maxProfileSeconds) {
		return 0, fmt.Errorf("seconds must be a number above 0 and at most %d", maxProfileSeconds)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// serveTrace serves an execution trace. It collects the trace before sending it, because the runtime buffers without
// bound what a slow client does not read.
func serveTrace(w http.ResponseWriter, r *http.Request) {
	length, _ := profileLength(r)
	ctx, cancel := context.WithTimeout(r.Context(), length)
	defer cancel()
	collected := &boundedTrace{end: cancel}
	if err := trace.Start(collected); err != nil {
		http.Error(w, "another trace is being collected; try again when it has ended", http.StatusConflict)
		return
	}
	<-ctx.Done()
	trace.Stop()
	deadline := time.Now().Add(listener.DefaultLimits().ResponseTimeout)
	if err := http.NewResponseController(w).SetWriteDeadline(deadline); err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="trace"`)
	_, _ = w.Write(collected.Bytes())
}

// boundedTrace ends a trace that becomes too long. It keeps what the runtime still writes, which readers need.
type boundedTrace struct {
	bytes.Buffer
	end context.CancelFunc
}

// Write appends a part of the trace. It never returns an error.
func (b *boundedTrace) Write(part []byte) (int, error) {
	if b.Len() > maxTrace {
		b.end()
	}
	return b.Buffer.Write(part) //nolint:wrapcheck // It never fails.
}
