package files_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/store/files"
	"example.com/providerd/store/storetest/processtest"
)

// TestMain runs the test binary as another program. "hold DIR" holds the lock of a directory until standard input ends,
// and
// "write-over PATH" writes a file with the owner of the one that it replaces.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"hold": processtest.Program(func(ctx context.Context, arguments []string) error {
			return files.WithLock(ctx, arguments[0], processtest.AwaitProceed)
		}),
		"write-over": processtest.Program(func(_ context.Context, arguments []string) error {
			owner, err := files.OwnerFor(arguments[0])
			if err != nil {
				return err
			}
			return writeFor(arguments[0], owner)
		}),
	})
}

// writeFor writes a file that belongs to owner, and replaces an existing one.
func writeFor(path string, owner files.Owner) (err error) {
	draft, err := files.CreateDraftOver(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, draft.Cleanup()) }()
	if _, err := draft.Write(version(1)); err != nil {
		return err
	}
	if err := files.Chown(draft.File, owner); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return draft.Replace(path + ".kept")
	}
	return draft.Publish()
}
