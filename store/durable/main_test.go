package durable_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/store/durable"
)

// TestMain lets the test binary be started as another program: "hold FOLDER" holds the lock of a folder until
// standard input ends, "write PATH" writes a file again and again, "draft PATH" holds a draft of one, and they say when
// they have begun. "write-over PATH" gives a file the owner of what it replaces, and "draft-once PATH" drafts one.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"hold": func() {
			exitOn(durable.WithLock(context.Background(), os.Args[1], func() error {
				_, begun := os.Stdout.WriteString("begun\n")
				_, ended := io.Copy(io.Discard, os.Stdin)
				return errors.Join(begun, ended)
			}))
		},
		"draft": func() {
			draft, err := durable.CreateDraft(os.Args[1])
			exitOn(err)
			_, begun := os.Stdout.WriteString("begun\n")
			_, ended := io.Copy(io.Discard, os.Stdin)
			exitOn(errors.Join(begun, ended, draft.Close()))
		},
		"draft-once": func() {
			draft, err := durable.CreateDraft(os.Args[1])
			exitOn(err)
			exitOn(errors.Join(draft.Publish(), draft.Close()))
		},
		"write-over": func() {
			owner, err := durable.OwnerFor(os.Args[1])
			exitOn(err)
			exitOn(durable.WriteFile(os.Args[1], version(1), owner))
		},
		"write": func() {
			for n := 0; ; n++ {
				exitOn(durable.WriteFile(os.Args[1], version(n), durable.Owner{}))
				if n == 0 {
					_, _ = os.Stdout.WriteString("begun\n")
				}
			}
		},
	})
}

func exitOn(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// start returns once another program has begun, which ends with its test.
func start(t *testing.T, name, argument string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, argument)
	command.Stderr = os.Stderr
	_, stdinErr := command.StdinPipe()
	stdout, err := command.StdoutPipe()
	if err := errors.Join(stdinErr, err, command.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("%s: %v, %v", name, err, command.Wait())
	}
	return command
}

// kill ends a program by SIGKILL.
func kill(t *testing.T, command *exec.Cmd) {
	t.Helper()
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); command.ProcessState.Exited() {
		t.Fatalf("it ended by itself: %v", err)
	}
}
