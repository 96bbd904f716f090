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

// blockedOutput takes nothing before it is opened.
type blockedOutput struct {
	opened chan struct{}
	bytes.Buffer
}

func (o *blockedOutput) Write(lines []byte) (int, error) {
	<-o.opened
	return o.Buffer.Write(lines)
}

func noteDropped(count int) []byte { return fmt.Appendf(nil, "dropped %d\n", count) }

// Every line arrives, whole and in order, or is counted, whatever the output does meanwhile.
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
				t.Fatalf("after line %d comes %q", next, line)
			}
			next = number + 1
			count--
		}
		if count != 0 {
			t.Fatalf("%d lines are neither there nor counted", count)
		}
	})
}

// An output that takes nothing holds nobody up, costs no more than its bound, and does not keep the program from
// ending.
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
			t.Errorf("%d bytes are set aside", capacity)
		}
		begun := time.Now()
		writer.close()
		if waited := time.Since(begun); waited != closeLogTimeout {
			t.Errorf("the end waits %v", waited)
		}
		close(output.opened)
		<-writer.ended
		written := bytes.Count(output.Bytes(), line)
		if note := fmt.Sprintf("dropped %d\n", more-fit); written != 1+fit || !strings.HasSuffix(output.String(), note) {
			t.Errorf("%d lines are written, and no note %q", written, note)
		}
	})
}

// brokenOutput fails until it is put right.
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

// Lines that an output refuses are counted once it takes some.
func TestLogWriterCountsWhatIsRefused(t *testing.T) {
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
		t.Errorf("log is %q, of which %d lines were ever dropped", output.String(), writer.totalDropped())
	}
}

// timedOutput notes when it gets how many lines.
type timedOutput struct {
	begun  time.Time
	writes []string
}

func (o *timedOutput) Write(lines []byte) (int, error) {
	o.writes = append(o.writes, fmt.Sprintf("%d at %v", countLines(lines), time.Since(o.begun)))
	return len(lines), nil
}

// A line comes at once, and those that follow it 10 ms later, unless the writer is closed.
func TestLogWriterPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		output := &timedOutput{begun: time.Now()}
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
			t.Errorf("lines come %q, want %q", output.writes, want)
		}
	})
}
