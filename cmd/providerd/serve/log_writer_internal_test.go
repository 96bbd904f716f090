package serve

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// blockedOutput blocks until it is opened.
type blockedOutput struct {
	opened chan struct{}
	bytes.Buffer
}

func (o *blockedOutput) Write(lines []byte) (int, error) {
	<-o.opened
	return o.Buffer.Write(lines)
}

func noteDropped(count int) []byte { return fmt.Appendf(nil, "dropped %d\n", count) }

// TestLogWriter checks that every line is written, whole and in order, or counted, whatever the output does.
func TestLogWriter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		output := &blockedOutput{opened: make(chan struct{})}
		writer := newLogWriter(output, noteDropped)
		count := rapid.IntRange(0, 100).Draw(t, "lines")
		openedAt := rapid.IntRange(0, count).Draw(t, "opened at")
		length := rapid.SampledFrom([]int{0, maxPendingLog / 40}).Draw(t, "length")
		for i := range count {
			if i == openedAt {
				close(output.opened)
			}
			_, _ = fmt.Fprintf(writer, "line %d %s\n", i, strings.Repeat("x", length))
		}
		if openedAt == count {
			close(output.opened)
		}
		writer.close()
		<-writer.ended
		next := 0
		for line := range strings.Lines(output.String()) {
			var number, dropped int
			if _, err := fmt.Sscanf(line, "dropped %d\n", &dropped); err == nil {
				count -= dropped
				continue
			}
			if _, err := fmt.Sscanf(line, "line %d ", &number); err != nil || number < next ||
				len(line) != len(fmt.Sprintf("line %d \n", number))+length {
				t.Fatalf("line %d is followed by %q", next, line)
			}
			next = number + 1
			count--
		}
		if count != 0 {
			t.Fatalf("%d lines are neither written nor counted", count)
		}
	})
}

// TestLogWriterIsBounded checks that a stuck output blocks no writer, takes bounded memory, and does not block
// shutdown.
func TestLogWriterIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		output := &blockedOutput{opened: make(chan struct{})}
		writer := newLogWriter(output, noteDropped)
		line := append(bytes.Repeat([]byte("x"), maxPendingLog/8), '\n')
		_, _ = writer.Write(line)
		synctest.Wait()
		const more, fit = 99, 7
		for range more {
			_, _ = writer.Write(line)
		}
		if capacity := cap(writer.pending); capacity > 2*maxPendingLog {
			t.Errorf("capacity is %d bytes", capacity)
		}
		started := time.Now()
		writer.close()
		if waited := time.Since(started); waited != closeLogTimeout {
			t.Errorf("close took %v", waited)
		}
		close(output.opened)
		<-writer.ended
		written := bytes.Count(output.Bytes(), line)
		if note := fmt.Sprintf("dropped %d\n", more-fit); written != 1+fit || !strings.HasSuffix(output.String(), note) {
			t.Errorf("%d lines are written, want %q at the end", written, note)
		}
	})
}

type brokenOutput struct {
	broken bool
	bytes.Buffer
}

func (o *brokenOutput) Write(lines []byte) (int, error) {
	if o.broken {
		return 0, errors.New("broken")
	}
	return o.Buffer.Write(lines)
}

// TestLogWriterCountsFailedWrites checks that lines are counted if writing them fails.
func TestLogWriterCountsFailedWrites(t *testing.T) {
	t.Parallel()
	output := &brokenOutput{broken: true}
	writer := newLogWriter(output, noteDropped)
	for range 3 {
		_, _ = writer.Write([]byte("one\ntwo\n"))
	}
	for writer.totalDropped() < 6 {
		runtime.Gosched()
	}
	output.broken = false
	_, _ = writer.Write([]byte("three\n"))
	writer.close()
	<-writer.ended
	if output.String() != "three\ndropped 6\n" || writer.totalDropped() != 6 {
		t.Errorf("log is %q, and %d lines are counted as dropped", output.String(), writer.totalDropped())
	}
}

// timedOutput notes when it gets how many lines.
type timedOutput struct {
	start  time.Time
	writes []string
}

func (o *timedOutput) Write(lines []byte) (int, error) {
	o.writes = append(o.writes, fmt.Sprintf("%d at %v", countLines(lines), time.Since(o.start)))
	return len(lines), nil
}

// TestLogWriterPauses checks that a line is written at once, and the following ones 10 ms later or on close.
func TestLogWriterPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		output := &timedOutput{start: time.Now()}
		writer := newLogWriter(output, noteDropped)
		_, _ = writer.Write([]byte("\n"))
		synctest.Wait()
		_, _ = writer.Write([]byte("\n\n"))
		<-time.After(25 * time.Millisecond)
		_, _ = writer.Write([]byte("\n"))
		synctest.Wait()
		_, _ = writer.Write([]byte("\n\n"))
		writer.close()
		if want := []string{"1 at 0s", "2 at 10ms", "1 at 25ms", "2 at 25ms"}; !slices.Equal(output.writes, want) {
			t.Errorf("writes are %q, want %q", output.writes, want)
		}
	})
}
