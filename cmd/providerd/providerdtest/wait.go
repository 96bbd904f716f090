package providerdtest

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// ReadyTimeout is how long a process may take to become ready on a machine that does much else.
const ReadyTimeout = time.Minute

// Buffer is what a process wrote so far.
type Buffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *Buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// WaitUntil waits until something is so.
func WaitUntil(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for begun := time.Now(); !isSo(); <-ticker.C {
		if time.Since(begun) > ReadyTimeout {
			t.Fatalf("after %v it is not so that %s", ReadyTimeout, what)
		}
	}
}

// EnvCount is the number that a target of the Makefile asks for in a variable, or that of an ordinary run.
func EnvCount(t *testing.T, variable string, ordinary int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return ordinary
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return count
}
