package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"example.com/providerd/store"
)

type keyCommands struct {
	Rotate keyRotateCommand `cmd:"" help:"Add a key to the keyset and seal with it from now on, also on a running server."`
	Reseal keyResealCommand `cmd:"" help:"Seal with the newest key what older keys have sealed, also while the server runs."`
}

type keyRotateCommand struct {
	databaseFlag
}

// Run adds a key.
func (c *keyRotateCommand) Run(ctx context.Context) error {
	return c.withStore(ctx, func(database *store.Store) error {
		id, err := database.RotateKey(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr,
			"new secrets are sealed with key %d; \"providerd key reseal\" does the same for old ones\n", id)
		return nil
	})
}

type keyResealCommand struct {
	databaseFlag
}

// Run reseals old secrets until all are done or it is interrupted.
func (c *keyResealCommand) Run(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return c.withStore(ctx, func(database *store.Store) error {
		report := newProgress(os.Stderr, "secrets resealed")
		err := database.Reseal(ctx, report.update)
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("interrupted after %d of %d secrets; run it again for the rest", report.done, report.total)
		}
		report.finish()
		return err
	})
}
