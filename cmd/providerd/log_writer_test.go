package main

import (
	"bytes"
	"fmt"
	"testing"

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

// Every line arrives, whole and in order, whatever the output does meanwhile.
func TestLogWriter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		output := &blockedOutput{opened: make(chan struct{})}
		writer := newLogWriter(output)
		count := rapid.IntRange(0, 100).Draw(t, "lines")
		openedAt := rapid.IntRange(0, count).Draw(t, "opened at")
		var expected bytes.Buffer
		for i := range count {
			if i == openedAt {
				close(output.opened)
			}
			line := fmt.Sprintf("line %d\n", i)
			expected.WriteString(line)
			if _, err := writer.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if openedAt == count {
			close(output.opened)
		}
		writer.close()
		if output.String() != expected.String() {
			t.Fatalf("log is %q, not %q", output.String(), expected.String())
		}
	})
}

// A log whose output takes nothing holds its writers up instead of filling the memory.
func TestLogWriterIsBounded(t *testing.T) {
	t.Parallel()
	output := &blockedOutput{opened: make(chan struct{})}
	writer := newLogWriter(output)
	block := make([]byte, maxPendingLog/2)
	const blocks = 16
	written := make(chan struct{}, blocks)
	go func() {
		for range blocks {
			_, _ = writer.Write(block)
			written <- struct{}{}
		}
	}()
	<-written
	writer.mutex.Lock()
	pending := len(writer.pending)
	writer.mutex.Unlock()
	if pending > 2*maxPendingLog {
		t.Errorf("%d bytes are pending", pending)
	}
	close(output.opened)
	for range blocks - 1 {
		<-written
	}
	writer.close()
	if output.Len() != blocks*len(block) {
		t.Errorf("%d bytes were written, not %d", output.Len(), blocks*len(block))
	}
}
