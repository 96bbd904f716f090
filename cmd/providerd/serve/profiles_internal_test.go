package serve

import (
	"testing"
)

// TestLongTracesEnd checks that a trace is ended at its maximum size, and keeps what is written after.
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
