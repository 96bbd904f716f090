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

// errPortTaken means that another program listens on the port.
var errPortTaken = errors.New("port is taken")

// process is a running program and its children.
type process struct {
	command *exec.Cmd
	output  *output
	// done is closed when the program and its children have ended.
	done <-chan struct{}
}

// StartBound starts a command so that its Pdeathsig ends it together with the tests, even if they are aborted. The
// channel is closed once the command has ended.
func StartBound(command *exec.Cmd) (ended <-chan struct{}, err error) {
	started, done := make(chan error), make(chan struct{})
	go func() {
		// The kernel sends Pdeathsig when the thread that started the program ends: https://go.dev/issue/27505
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

func start(command *exec.Cmd) (*process, error) {
	p := &process{command: command, output: &output{}}
	// Wait returns at the end of this pipe, which all children inherit.
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

// wait waits until the program and its children have ended, successfully or not.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("did not end: %w: %s", ctx.Err(), p.output)
	}
}

// failure returns an error with the exit status and output of the program.
func (p *process) failure() error {
	output := p.output.String()
	err := fmt.Errorf("%s ended: %s: %s", filepath.Base(p.command.Path), p.command.ProcessState, output)
	if strings.Contains(output, "Address already in use") {
		return errors.Join(errPortTaken, err)
	}
	return err
}

// awaitReady waits until the cluster of this name accepts connections at the URL. If the port is taken, another cluster
// with the same password may answer before the program ends.
func (p *process) awaitReady(ctx context.Context, url, name string) error {
	err := await(ctx, p.done, func() error {
		return with(ctx, url, func(connection *pgx.Conn) error {
			var found string
			row := connection.QueryRow(ctx, "SELECT current_setting('cluster_name')", pgx.QueryExecModeExec)
			if err := row.Scan(&found); err != nil {
				return err
			}
			if found != name {
				return fmt.Errorf("%s answers instead of %s", found, name)
			}
			return nil
		})
	})
	if p.ended() {
		return p.failure()
	}
	return err
}

// signal sends a signal to the program only. It does nothing if the program has ended.
func (p *process) signal(signal syscall.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s: %w", signal, err)
	}
	return nil
}

// signalAll sends a signal to the program and its children. Each process of PostgreSQL is in its own process group,
// so a signal to the group would not reach them.
func (p *process) signalAll(signal syscall.Signal) error {
	return signalTree(p.command.Process.Pid, signal, p.signal)
}

// signalTree sends a signal to the children of a program, then uses send to signal the program itself.
func signalTree(id int, signal syscall.Signal, send func(syscall.Signal) error) error {
	// While it is stopped, it starts no children, and their process IDs cannot be reused.
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

// children returns the IDs of the child processes that a process has not waited for.
func children(parent int) ([]int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, path := range paths {
		// The file is gone if the process has ended.
		text, _ := os.ReadFile(path)
		// proc_pid_stat(5): ID, name in parentheses, which may contain some, state, ID of the parent.
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

// output collects the output of a program.
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
