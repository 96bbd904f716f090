package serve

import (
	"bytes"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestErrorsAreRateLimited reports more errors than are logged, concurrently.
func TestErrorsAreRateLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		handler := newSDKErrors(&url.URL{Scheme: "http", Host: "127.0.0.1:4318"}, slog.New(slog.NewTextHandler(log, nil)))
		omitted := func(count int) string {
			logged := len(log.String())
			var group sync.WaitGroup
			for range count {
				group.Go(func() { handler.Handle(errors.New("no")) })
			}
			group.Wait()
			var found []string
			for line := range strings.Lines(log.String()[logged:]) {
				_, value, _ := strings.Cut(strings.TrimSpace(line), "omitted=")
				found = append(found, value)
			}
			return strings.Join(found, " ")
		}
		for _, step := range []struct {
			wait   time.Duration
			errors int
			want   string
		}{
			{0, 10, "0 0 0"},
			{59 * time.Second, 2, ""},
			{2 * time.Second, 5, "9"},
			{59 * time.Second, 1, ""},
			{2 * time.Second, 1, "5"},
			{time.Hour, 1, "0"},
		} {
			<-time.After(step.wait)
			if got := omitted(step.errors); got != step.want {
				t.Errorf("after %v more, %d errors are logged with omitted %q, want %q", step.wait, step.errors, got, step.want)
			}
		}
	})
}
