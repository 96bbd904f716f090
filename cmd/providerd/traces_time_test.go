package main

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// TestErrorsOfTracesEachMinute meets, in a time of its own, more errors than are logged.
func TestErrorsOfTracesEachMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &syncBuffer{}
		handler := newSDKErrors(&url.URL{Scheme: "http", Host: "127.0.0.1:4318"}, slog.New(slog.NewTextHandler(log, nil)))
		omitted := func(count int) string {
			logged := len(log.String())
			for range count {
				handler.Handle(errors.New("no"))
			}
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

// countingProcessor counts what it is handed.
type countingProcessor struct{ ended, flushed, shutDown atomic.Int64 }

var _ sdktrace.SpanProcessor = (*countingProcessor)(nil)

func (p *countingProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

func (p *countingProcessor) OnEnd(sdktrace.ReadOnlySpan) { p.ended.Add(1) }

func (p *countingProcessor) ForceFlush(context.Context) error {
	p.flushed.Store(p.ended.Load())
	return nil
}

func (p *countingProcessor) Shutdown(context.Context) error {
	p.shutDown.Store(p.ended.Load())
	return nil
}

// TestBurstsOfSpans ends spans in a time of its own: so many as make a burst are handed over at once, fewer when they
// have waited, or with a flush.
func TestBurstsOfSpans(t *testing.T) {
	t.Parallel()
	for queueSize, most := range map[int]int{1: 1, 2: 1, 9: 4, 256: 128, 2048: 128} {
		synctest.Test(t, func(t *testing.T) {
			counted := &countingProcessor{}
			bursts := newSpanBursts(counted, queueSize)
			ended := 0
			end := func(count int) {
				for range count {
					bursts.OnEnd(tracetest.SpanStub{}.Snapshot())
				}
				ended += count
			}
			expect := func(what string, spans *atomic.Int64, want int) {
				t.Helper()
				if got := int(spans.Load()); got != want {
					t.Errorf("of a queue of %d, %s are %d spans, want %d", queueSize, what, got, want)
				}
			}
			end(most - 1)
			expect("handed over before a burst is full", &counted.ended, 0)
			end(1)
			expect("handed over at once", &counted.ended, most)
			end(most - 1)
			<-time.After(burstInterval - time.Millisecond)
			expect("handed over before they have waited", &counted.ended, most)
			<-time.After(2 * time.Millisecond)
			synctest.Wait()
			expect("handed over after they have waited", &counted.ended, ended)
			end(most - 1)
			if err := bursts.ForceFlush(t.Context()); err != nil {
				t.Error(err)
			}
			expect("flushed", &counted.flushed, ended)
			end(most - 1)
			if err := bursts.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			expect("handed over in the end", &counted.shutDown, ended)
		})
	}
}
