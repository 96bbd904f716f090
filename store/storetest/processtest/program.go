package processtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// Program returns a program for testscript.Main that calls work with its arguments.
func Program(work func(ctx context.Context, arguments []string) error) func() {
	return func() {
		if err := work(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// AwaitProceed reports that the program is ready, and returns once the test calls End.
func AwaitProceed() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// Other is the test binary running as another program, as tests of locks between processes need.
type Other struct {
	*Child
	stdin io.Closer
}

// StartSelf starts a program of the test binary, and returns once it calls AwaitProceed.
func StartSelf(t testing.TB, program string, arguments ...string) Other {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Args = append([]string{program}, arguments...)
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	child, err := Start(command)
	if err != nil {
		t.Fatal(err)
	}
	WaitUntil(t, "the program is ready", func() bool {
		if child.HasEnded() {
			t.Fatalf("%v: %v: %s", command.Args, child.Wait(), child.Stderr)
		}
		return child.Stdout.String() == "ready\n"
	})
	return Other{child, stdin}
}

// End lets the program continue and waits until it exits successfully.
func (o Other) End(t testing.TB) {
	t.Helper()
	_ = o.stdin.Close()
	if err := o.Wait(); err != nil {
		t.Errorf("%v: %v: %s", o.Command.Args, err, o.Stderr)
	}
}
