package providerdtest

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

// ReadyTimeout is how long a process may take to become ready on a busy machine.
const ReadyTimeout = 2 * time.Minute

// Buffer is a buffer that is safe for concurrent use.
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

// WaitUntil waits until condition returns true. It fails the test, with what it waited for, after ReadyTimeout.
func WaitUntil(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for started := time.Now(); !condition(); <-ticker.C {
		if time.Since(started) > ReadyTimeout {
			t.Fatalf("timed out after %v waiting until %s", ReadyTimeout, what)
		}
	}
}

// EnvCount returns the number in an environment variable, which targets of the Makefile set, or fallback.
func EnvCount(t *testing.T, variable string, fallback int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return fallback
	}
	count, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return count
}
