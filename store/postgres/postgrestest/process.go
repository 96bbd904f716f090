package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// errPortTaken is returned where another program listens on the port already.
var errPortTaken = errors.New("the port is taken")

// process is a program that runs, and all that it started.
type process struct {
	command *exec.Cmd
	output  *output
	// done is closed when the program and all that it started have ended.
	done <-chan struct{}
}

// StartBound starts a command in a way that lets its Pdeathsig bind it to the tests, even those that are aborted. The
// channel is closed once it has ended.
func StartBound(command *exec.Cmd) (ended <-chan struct{}, err error) {
	started, done := make(chan error), make(chan struct{})
	go func() {
		// The kernel sends Pdeathsig when the thread ends that started the program: https://go.dev/issue/27505
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait()
		}
	}()
	return done, <-started
}

// start starts a program.
func start(command *exec.Cmd) (*process, error) {
	p := &process{command: command, output: &output{}}
	// Wait returns at the end of this pipe, which all that the program starts inherit.
	command.Stdout, command.Stderr = p.output, p.output
	var err error
	if p.done, err = StartBound(command); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait returns when the program and all that it started have ended, however they did.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("it has not ended: %w: %s", ctx.Err(), p.output)
	}
}

// failure says how the program ended.
func (p *process) failure() error {
	output := p.output.String()
	err := fmt.Errorf("%s ended: %s: %s", filepath.Base(p.command.Path), p.command.ProcessState, output)
	if strings.Contains(output, "Address already in use") {
		return errors.Join(errPortTaken, err)
	}
	return err
}

// awaitAnswer returns once the server answers under the URL.
func (p *process) awaitAnswer(ctx context.Context, url string) error {
	err := await(ctx, p.done, func() error {
		return with(ctx, url, func(*pgx.Conn) error { return nil })
	})
	if p.ended() {
		return p.failure()
	}
	return err
}

// signal sends a signal to the program alone. One that has ended needs none.
func (p *process) signal(signal syscall.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s: %w", signal, err)
	}
	return nil
}

// signalAll sends a signal to the program and all that it started. No signal to the group does that, as each of
// PostgreSQL's processes has its own.
func (p *process) signalAll(signal syscall.Signal) error {
	return signalTree(p.command.Process.Pid, signal, p.signal)
}

// signalTree sends a signal to the children of a program, and by send to itself.
func signalTree(id int, signal syscall.Signal, send func(syscall.Signal) error) error {
	// Stopped, it starts no more, and none of the ids can become somebody else's.
	if err := send(syscall.SIGSTOP); err != nil {
		return err
	}
	for sent := map[int]bool{}; ; {
		found, err := children(id)
		if err != nil {
			return err
		}
		before := len(sent)
		for _, child := range found {
			if sent[child] {
				continue
			}
			if err := syscall.Kill(child, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("send %s: %w", signal, err)
			}
			sent[child] = true
		}
		if len(sent) == before {
			return send(signal)
		}
	}
}

// children returns the ids of the processes that a process started and has not waited for.
func children(parent int) ([]int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, path := range paths {
		// One that has ended meanwhile has no file any more.
		text, _ := os.ReadFile(path)
		// Proc_pid_stat(5): the id, the name in parentheses, which may hold some, the state, the id of the parent.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(parent) {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		found = append(found, id)
	}
	return found, nil
}

// output is what a program wrote.
type output struct {
	mutex sync.Mutex
	text  []byte
}

func (o *output) Write(text []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.text = append(o.text, text...)
	return len(text), nil
}

func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return string(o.text)
}
