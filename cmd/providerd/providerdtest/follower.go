package providerdtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

// Follower runs "providerd audit --follow" and appends its lines to a file. If the command ends, because the database
// is unavailable for too long or was stopped, it is started again.
type Follower struct {
	command func(ctx context.Context, arguments ...string) *exec.Cmd
	file    string
	// stop stops following, and returns once the command has ended.
	stop func()
}

// StartFollower starts to follow the database that commands use. The lines and the cursor are in a directory.
func StartFollower(
	t *testing.T, dir string, command func(ctx context.Context, arguments ...string) *exec.Cmd,
) *Follower {
	t.Helper()
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	f := &Follower{command: command, file: filepath.Join(dir, "followed.jsonl"), stop: func() { cancel(); group.Wait() }}
	t.Cleanup(f.stop)
	group.Go(func() {
		for ctx.Err() == nil {
			_ = f.run(ctx, "--follow")
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	})
	return f
}

// run runs the command once.
func (f *Follower) run(ctx context.Context, arguments ...string) error {
	file, err := os.OpenFile(f.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	command := f.command(ctx, append([]string{"audit", "list", "--output", "jsonl", "--cursor-file", f.file + ".cursor"}, arguments...)...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.Stdout = file
	return command.Run()
}

// Verify stops following, and fails t unless the lines agree with the database.
func (f *Follower) Verify(t *testing.T) {
	t.Helper()
	f.stop()
	if lines, err := os.ReadFile(f.file); len(lines) == 0 {
		t.Errorf("nothing was followed: %v", err)
	}
	if err := f.run(t.Context()); err != nil {
		t.Fatalf("follow the rest: %v", err)
	}
	t.Log(processtest.Run(t, f.command(t.Context(), "audit", "verify", f.file)))
}
