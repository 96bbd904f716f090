package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// burstInterval is how long a span waits for others at most.
	burstInterval = 100 * time.Millisecond
	// maxBurst is how many spans wait at most. It is well under the 2,048 that the SDK's queue takes.
	maxBurst = 128
)

// spanBursts hands ended spans to the SDK's queue several at a time. The SDK would wake its exporting thread for each
// of them, which costs a lone create more than all else that is done for its spans.
type spanBursts struct {
	sdktrace.SpanProcessor
	mutex sync.Mutex
	// waiting are the spans of the next burst, and most is how many there are before they are handed over.
	waiting []sdktrace.ReadOnlySpan
	most    int
	// timer hands over what waits. It runs from the first span of a burst on.
	timer *time.Timer
}

// newSpanBursts hands bursts that a queue of some size can take to a processor.
func newSpanBursts(processor sdktrace.SpanProcessor, queueSize int) *spanBursts {
	most := max(1, min(maxBurst, queueSize/2))
	bursts := &spanBursts{SpanProcessor: processor, most: most, waiting: make([]sdktrace.ReadOnlySpan, 0, most)}
	bursts.timer = time.AfterFunc(burstInterval, bursts.handOver)
	return bursts
}

// OnEnd lets a span wait for its burst.
func (b *spanBursts) OnEnd(span sdktrace.ReadOnlySpan) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.waiting = append(b.waiting, span)
	switch len(b.waiting) {
	case b.most:
		b.empty()
	case 1:
		b.timer.Reset(burstInterval)
	}
}

// ForceFlush exports what waits, and all that came before.
func (b *spanBursts) ForceFlush(ctx context.Context) error {
	b.handOver()
	if err := b.SpanProcessor.ForceFlush(ctx); err != nil {
		return fmt.Errorf("flush spans: %w", err)
	}
	return nil
}

// Shutdown exports what waits, and ends the processor.
func (b *spanBursts) Shutdown(ctx context.Context) error {
	b.timer.Stop()
	b.handOver()
	if err := b.SpanProcessor.Shutdown(ctx); err != nil {
		return fmt.Errorf("export the last spans: %w", err)
	}
	return nil
}

func (b *spanBursts) handOver() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.empty()
}

// empty hands over what waits. The mutex is held: the SDK's queue drops what it cannot take, and never blocks.
func (b *spanBursts) empty() {
	for _, span := range b.waiting {
		b.SpanProcessor.OnEnd(span)
	}
	clear(b.waiting)
	b.waiting = b.waiting[:0]
}
