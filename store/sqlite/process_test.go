package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/store/database"
	"example.com/providerd/store/sqlite"
)

// TestMain lets the test binary be started as one of these programs, because the locks of SQLite keep apart processes.
// Each says that it is ready, and waits for the end of its standard input.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"create": program(createOnce), "commit": program(commitMany), "fill-disk": program(fillDisk),
		"limit-wal": program(limitWAL), "read-on-full-disk": program(readOnFullDisk), "back-up": program(backUp),
	})
}

func program(work func(ctx context.Context, arguments []string) error) func() {
	return func() {
		if err := work(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func awaitStart() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// createOnce makes the database at PATH.
func createOnce(ctx context.Context, arguments []string) error {
	if err := awaitStart(); err != nil {
		return err
	}
	opened, err := sqlite.Create(ctx, arguments[0], slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return opened.Close()
}

// commitMany opens the database at PATH, and then commits applications NAME0, NAME1 and so on up to COUNT.
func commitMany(ctx context.Context, arguments []string) error {
	count, err := strconv.Atoi(arguments[2])
	if err != nil {
		return err
	}
	r, err := openRig(ctx, arguments[0])
	if err != nil {
		return err
	}
	if err := awaitStart(); err != nil {
		return err
	}
	for i := range count {
		if err := r.commit(ctx, fmt.Sprint(arguments[1], i)); err != nil {
			return err
		}
	}
	return errors.Join(r.batches.Close(), r.Close())
}

// backUp backs up the database at PATH to COPY, and lets no file grow beyond what is written first.
func backUp(ctx context.Context, arguments []string) error {
	db, err := sqlite.Open(ctx, arguments[0], slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := awaitStart(); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	steps := 0
	err = db.Backup(ctx, arguments[1], func(done, _ int64) {
		if steps++; steps == 1 {
			err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(done), Max: uint64(done)})
		}
	}, func(database.Readable) error { return errors.New("what is not whole is checked") })
	if steps == 0 || !errors.Is(err, database.ErrUnavailable) {
		return fmt.Errorf("after %d steps: error is %w", steps, err)
	}
	return db.Close()
}

// process is one of the programs.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
	stderr  bytes.Buffer
}

// start starts a program and waits until it is ready.
func start(t *testing.T, arguments ...string) *process {
	t.Helper()
	p := &process{command: exec.CommandContext(t.Context(), os.Args[0])}
	p.command.Args = arguments
	p.command.Stderr = &p.stderr
	stdin, err := p.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.command.StdoutPipe()
	if err == nil {
		err = p.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("ready\n"))); err != nil {
		t.Fatalf("%v: %v, %v: %s", arguments, err, p.command.Wait(), &p.stderr)
	}
	return p
}

// proceed lets the program do its work.
func (p *process) proceed(t *testing.T) {
	t.Helper()
	if err := p.stdin.Close(); err != nil {
		t.Fatal(err)
	}
}

// end waits until the program ends well.
func (p *process) end(t *testing.T) {
	t.Helper()
	if err := p.command.Wait(); err != nil {
		t.Errorf("%v: %v: %s", p.command.Args, err, &p.stderr)
	}
}

// kill ends the program as a crash does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	_ = p.command.Wait()
}
