package durable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"example.com/providerd/store/durable"
	"example.com/providerd/store/storetest/processtest"
)

// TestMain runs the test binary as another program. "hold DIR" holds the lock of a directory until standard input ends,
// "write-over PATH" writes a file with the owner of the one that it replaces, and "draft-once PATH" creates a draft.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"hold": processtest.Program(func(ctx context.Context, arguments []string) error {
			return durable.WithLock(ctx, arguments[0], processtest.AwaitProceed)
		}),
		"draft-once": processtest.Program(func(_ context.Context, arguments []string) error {
			draft, err := durable.CreateDraft(arguments[0])
			if err != nil {
				return err
			}
			return errors.Join(draft.Publish(), draft.Close())
		}),
		"write-over": processtest.Program(func(_ context.Context, arguments []string) error {
			owner, err := durable.OwnerFor(arguments[0])
			if err != nil {
				return err
			}
			return durable.WriteFile(arguments[0], version(1), owner)
		}),
	})
}
