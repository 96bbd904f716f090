package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"example.com/providerd/store"
	"example.com/providerd/store/seal"
)

type keyCommands struct {
	Create  keyCreateCommand  `cmd:"" help:"Make the keyset file of a PostgreSQL database."`
	Rotate  keyRotateCommand  `cmd:"" help:"Add a key to the keyset. A SQLite database is sealed with it from now on, also by a running server; with replicas, bring the file to each of them and promote the key then."`
	Promote keyPromoteCommand `cmd:"" help:"Seal with the newest key of the keyset from now on, once each replica has it."`
	Reseal  keyResealCommand  `cmd:"" help:"Seal with the newest key what older keys have sealed, also while the server runs."`
}

type keyCreateCommand struct {
	Keyset string `required:"" env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"The file to make, readable by its owner alone (${env})."`
}

// Run makes a keyset file.
func (c *keyCreateCommand) Run(ctx context.Context) error {
	keyring, err := seal.CreateKeyring(ctx, c.Keyset)
	if err != nil {
		return err
	}
	keys, err := keyring.Current()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "made key %d in %s; bring the file to each replica, and keep a copy: "+
		"without it, no secret can be read\n", keys.IDs()[0], c.Keyset)
	return nil
}

type keyRotateCommand struct {
	databaseFlag
}

// Run adds a key.
func (c *keyRotateCommand) Run(ctx context.Context) error {
	return c.withStore(ctx, func(database *store.Store) error {
		if database.IsShared() {
			id, err := database.AddKey(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "added key %d to %s; bring the file to each replica, then run \"providerd key promote\"\n",
				id, c.Keyset)
			return nil
		}
		id, err := database.RotateKey(ctx)
		if err != nil {
			return err
		}
		tellSealing(id)
		return nil
	})
}

type keyPromoteCommand struct {
	databaseFlag
}

// Run lets the newest key seal.
func (c *keyPromoteCommand) Run(ctx context.Context) error {
	return c.withStore(ctx, func(database *store.Store) error {
		id, err := database.PromoteKey(ctx)
		if err != nil {
			return err
		}
		tellSealing(id)
		if database.IsShared() {
			fmt.Fprintln(os.Stderr, "bring the keyset file to each replica again, so that it seals with this key, too")
		}
		return nil
	})
}

func tellSealing(id uint32) {
	fmt.Fprintf(os.Stderr,
		"new secrets are sealed with key %d; \"providerd key reseal\" does the same for old ones\n", id)
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
