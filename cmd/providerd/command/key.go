package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
	"example.com/providerd/store/seal"
)

type keyCommands struct {
	Create  keyCreateCommand  `cmd:"" help:"Create the keyset file of a PostgreSQL database."`
	Rotate  keyRotateCommand  `cmd:"" help:"Add a key to the keyset. On SQLite, new secrets are encrypted with it at once, also by a running server; with replicas, distribute the file to each of them, then promote the key."`
	Promote keyPromoteCommand `cmd:"" help:"Encrypt new secrets with the newest key of the keyset, once each replica has it."`
	Reseal  keyResealCommand  `cmd:"" help:"Re-encrypt with the newest key what older keys have encrypted, also while the server runs."`
	Retire  keyRetireCommand  `cmd:"" help:"Remove the keys from the keyset that are older than the newest one, once nothing is encrypted with them. The keyset as it was is kept."`
}

type keyCreateCommand struct {
	Keyset string `required:"" env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"The file to create, readable by its owner alone (${env})."`
}

// Validate refuses what is no file of a person's own. That the flag is missing, the parser says.
func (c *keyCreateCommand) Validate() error {
	if c.Keyset == "" {
		return nil
	}
	if err := flags.CheckFileName(c.Keyset); err != nil {
		return fmt.Errorf("--keyset: %w", err)
	}
	return nil
}

// Run makes a keyset file.
func (c *keyCreateCommand) Run(ctx context.Context, messages *console.Messages) error {
	keyring, err := seal.CreateKeyring(ctx, c.Keyset)
	if err != nil {
		return err
	}
	keys, err := keyring.Current(ctx)
	if err != nil {
		return err
	}
	messages.Note("created key %d in %s; distribute the file to each replica, and back it up: "+
		"without it, no secret can be read", keys.IDs()[0], c.Keyset)
	return nil
}

type keyRotateCommand struct {
	flags.DatabaseFlags
}

// Run adds a key.
func (c *keyRotateCommand) Run(ctx context.Context, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		if database.IsShared() {
			id, err := database.AddKey(ctx)
			if err != nil {
				return err
			}
			messages.Note("added key %d to %s; distribute the file to each replica, then run \"providerd key promote\"",
				id, c.Keyset)
			return nil
		}
		id, err := database.RotateKey(ctx)
		if err != nil {
			return err
		}
		tellSealing(messages, id)
		return nil
	})
}

type keyPromoteCommand struct {
	flags.DatabaseFlags
}

// Run lets the newest key seal.
func (c *keyPromoteCommand) Run(ctx context.Context, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		id, err := database.PromoteKey(ctx)
		if err != nil {
			return err
		}
		tellSealing(messages, id)
		if database.IsShared() {
			messages.Note("distribute the keyset file to each replica again, so that it knows the new primary key")
		}
		return nil
	})
}

func tellSealing(messages *console.Messages, id uint32) {
	messages.Note("new secrets are encrypted with key %d; \"providerd key reseal\" re-encrypts old ones", id)
}

type keyResealCommand struct {
	flags.DatabaseFlags
}

// Run reseals old secrets until all are done or it is interrupted.
func (c *keyResealCommand) Run(ctx context.Context, messages *console.Messages) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return c.WithStore(ctx, func(database *store.Store) error {
		report := messages.Progress("secrets re-encrypted")
		err := database.Reseal(ctx, report.Update)
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("interrupted after %d of %d secrets; run it again for the rest", report.Done, report.Total)
		}
		report.Finish()
		return err
	})
}

type keyRetireCommand struct {
	flags.DatabaseFlags
}

// Help is the long help text.
func (keyRetireCommand) Help() string {
	return "Removes the keys that no secret of the database is encrypted with any more, once \"providerd key reseal\" " +
		"has re-encrypted all. The keyset as it was is kept beside the new one, under a name that ends in .retired- and " +
		"the time: backups that were made before the reseal need it. A running server accepts the new file. With " +
		"replicas, each that is alive must have the keyset that \"providerd key promote\" wrote; distribute the new one " +
		"to them then."
}

// Run removes old keys.
func (c *keyRetireCommand) Run(ctx context.Context, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		retired, err := database.RetireKeys(ctx)
		if errors.Is(err, store.ErrKeysInUse) {
			return fmt.Errorf("%w; run \"providerd key reseal\" first", err)
		}
		if err != nil {
			return err
		}
		if len(retired.IDs) == 0 {
			messages.Note("there are no keys to retire: none is older than the one that encrypts new secrets")
			return nil
		}
		messages.Note("retired %s", listKeys(retired.IDs))
		messages.Warn("backups made before the last \"providerd key reseal\" need the keys that only %s has now; "+
			"keep it as safe as the keyset, and as long as those backups", retired.Kept)
		if database.IsShared() {
			messages.Note("distribute the keyset file to each replica again")
		}
		return nil
	})
}

// shownKeys are how many keys are named.
const shownKeys = 16

func listKeys(ids []uint32) string {
	var names []string
	for _, id := range ids[:min(len(ids), shownKeys)] {
		names = append(names, fmt.Sprint(id))
	}
	list := console.Count(len(ids), "key") + ": " + strings.Join(names, ", ")
	if more := len(ids) - len(names); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}
