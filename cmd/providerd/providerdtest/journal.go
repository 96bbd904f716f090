package providerdtest

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/providerd/store/storetest/processtest"
)

// Journal records the responses that clients got.
type Journal struct {
	Started time.Time
	mutex   sync.Mutex
	// Creates are the acknowledged records by name.
	Creates map[string]Record
	// Failures are errors by the name of what was sent.
	Failures map[string]error
}

// NewJournal returns a new journal that starts now.
func NewJournal() *Journal {
	return &Journal{Started: time.Now(), Creates: map[string]Record{}, Failures: map[string]error{}}
}

// Load is a set of callers that repeat a step until they are stopped or the step returns false.
type Load struct {
	isStopped atomic.Bool
	group     sync.WaitGroup
}

// StartLoad starts callers. Each passes its number to step, and n counts its steps from 0.
func StartLoad(callers int, step func(caller, n int) bool) *Load {
	l := &Load{}
	for caller := range callers {
		l.group.Go(func() {
			for n := 0; !l.isStopped.Load() && step(caller, n); n++ {
			}
		})
	}
	return l
}

// Stop waits for the callers to finish their current steps.
func (l *Load) Stop() {
	l.isStopped.Store(true)
	l.group.Wait()
}

// Load starts callers that each send creates until one fails.
func (j *Journal) Load(callers int, prefix string, create func(name string) (Record, error)) *Load {
	return StartLoad(callers, func(caller, n int) bool {
		name := fmt.Sprintf("%s-%d-%d", prefix, caller, n)
		record, err := create(name)
		if err != nil {
			j.Fail(name, err)
			return false
		}
		j.Acknowledge(record)
		return true
	})
}

// Acknowledge records an acknowledged create.
func (j *Journal) Acknowledge(record Record) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.Creates[record.Name] = record
}

// Fail records the error of a request.
func (j *Journal) Fail(sent string, err error) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.Failures[sent] = err
}

// Acknowledged returns a copy of the creates so far.
func (j *Journal) Acknowledged() map[string]Record {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return maps.Clone(j.Creates)
}

// Any returns one of the creates so far.
func (j *Journal) Any() (record Record) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	for _, record = range j.Creates {
		break
	}
	return record
}

// Counts returns how many creates have been acknowledged, and how many requests have failed.
func (j *Journal) Counts() (creates, failed int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return len(j.Creates), len(j.Failures)
}

// WaitForMore waits for more creates, or for one that fails.
func (j *Journal) WaitForMore(t *testing.T, more int) {
	t.Helper()
	first, _ := j.Counts()
	processtest.WaitUntil(t, "more creates are acknowledged", func() bool {
		creates, failed := j.Counts()
		return creates >= first+more || failed > 0
	})
}

// Compare checks that exactly the acknowledged creates are stored, once each and as acknowledged, and that no request
// has failed.
func (j *Journal) Compare(t *testing.T, stored []Record) {
	t.Helper()
	t.Logf("acknowledged %d, stored %d", len(j.Creates), len(stored))
	CheckIncludes(t, stored, j.Creates)
	processtest.Expect(t, len(stored) <= len(j.Creates), "stored %d, acknowledged %d", len(stored), len(j.Creates))
	processtest.Expect(t, len(j.Failures) == 0, "%d requests failed, such as %v", len(j.Failures), Sample(j.Failures))
}

// Sample returns up to five entries of a map.
func Sample[Value any](all map[string]Value) map[string]Value {
	sample := map[string]Value{}
	for key, value := range all {
		if len(sample) < 5 {
			sample[key] = value
		}
	}
	return sample
}

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
	lines, err := os.ReadFile(f.file)
	processtest.Expect(t, len(lines) != 0, "nothing was followed: %v", err)
	processtest.Must(t, f.run(t.Context()))
	t.Log(processtest.Run(t, f.command(t.Context(), "audit", "verify", f.file)))
}
