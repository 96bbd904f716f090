// Package soak_test loads a server steadily through restarts, rotations and faults, and checks that no resource leaks.
// Command bench measures speed.
//
// Start with soak_test.go.
package soak_test

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"

	"example.com/providerd/cmd/providerd/providerdtest"
)

// leakVariable is set for a program that leaks.
const leakVariable = "INJECTED_LEAK"

// TestMain also runs the test binary as providerd, which leaks if a variable is set.
func TestMain(m *testing.M) {
	providerdtest.MainAround(m, func(program func() int) int {
		if os.Getenv(leakVariable) != "" {
			go leak()
		}
		return program()
	})
}

// leak leaks 100 KiB, a goroutine and a descriptor as often as the load sends 100 creates.
func leak() {
	never := make(chan struct{})
	for range time.Tick(time.Second / 3) {
		memory := bytes.Repeat([]byte{1}, 100<<10)
		file, _ := os.Open(os.DevNull)
		go func() {
			<-never
			runtime.KeepAlive(memory)
			runtime.KeepAlive(file)
		}()
	}
}
