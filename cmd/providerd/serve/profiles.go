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
	// maxProfileSeconds is how long a profile may be taken.
	maxProfileSeconds = 60
	// maxTrace is how many bytes an execution trace has before it ends early.
	maxTrace = 16 << 20
)

// newProfiles answers what is asked for at /debug/pprof/, unless it would take long. There is no profile of the command
// line.
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

// profileLength is how long a profile is to be taken: a second where the request does not tell.
func profileLength(r *http.Request) (time.Duration, error) {
	text := r.FormValue("seconds")
	if text == "" {
		return time.Second, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0 && seconds <= maxProfileSeconds) {
		return 0, fmt.Errorf("seconds is to be a number above 0 and up to %d", maxProfileSeconds)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// serveTrace answers with an execution trace. It sends what it has collected: the runtime would keep without bound what
// a slow caller does not take.
func serveTrace(w http.ResponseWriter, r *http.Request) {
	length, _ := profileLength(r)
	ctx, cancel := context.WithTimeout(r.Context(), length)
	defer cancel()
	collected := &boundedTrace{end: cancel}
	if err := trace.Start(collected); err != nil {
		http.Error(w, "a trace is being collected; try again once it has ended", http.StatusConflict)
		return
	}
	<-ctx.Done()
	trace.Stop()
	answered := time.Now().Add(listener.DefaultLimits().AnswerTimeout)
	if err := http.NewResponseController(w).SetWriteDeadline(answered); err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="trace"`)
	_, _ = w.Write(collected.Bytes())
}

// boundedTrace ends a trace that is long. What the runtime still writes then is needed to read it.
type boundedTrace struct {
	bytes.Buffer
	end context.CancelFunc
}

// Write keeps a part of the trace. It returns no error.
func (b *boundedTrace) Write(part []byte) (int, error) {
	if b.Len() > maxTrace {
		b.end()
	}
	return b.Buffer.Write(part) //nolint:wrapcheck // There is none.
}
