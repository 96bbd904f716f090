package serve

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// timedOutput notes when it gets how many lines.
type timedOutput struct {
	start  time.Time
	writes []string
}

func (o *timedOutput) Write(lines []byte) (int, error) {
	o.writes = append(o.writes, fmt.Sprintf("%d at %v", bytes.Count(lines, []byte("\n")), time.Since(o.start)))
	return len(lines), nil
}

// TestLogWriterPauses checks that a line is written at once, and the following ones 10 ms later or on close.
func TestLogWriterPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		output := &timedOutput{start: time.Now()}
		writer := newLogWriter(output, func(int64) []byte { return nil })
		_, _ = writer.Write([]byte("\n"))
		synctest.Wait()
		_, _ = writer.Write([]byte("\n"))
		_, _ = writer.Write([]byte("\n"))
		<-time.After(25 * time.Millisecond)
		_, _ = writer.Write([]byte("\n"))
		synctest.Wait()
		_, _ = writer.Write([]byte("\n"))
		_, _ = writer.Write([]byte("\n"))
		writer.close()
		if want := []string{"1 at 0s", "2 at 10ms", "1 at 25ms", "2 at 25ms"}; !slices.Equal(output.writes, want) {
			t.Errorf("writes are %q, want %q", output.writes, want)
		}
	})
}
