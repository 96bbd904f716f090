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
	Rotate  keyRotateCommand  `cmd:"" help:"Add a key to the keyset."`
	Promote keyPromoteCommand `cmd:"" help:"Encrypt new secrets with the newest key."`
	Reseal  keyResealCommand  `cmd:"" help:"Re-encrypt older secrets with the newest key."`
	Retire  keyRetireCommand  `cmd:"" help:"Remove keys that no secret is encrypted with."`
}

type keyCreateCommand struct {
	Keyset string `required:"" env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"The file to create, readable only by its owner (${env})."`
}

// Validate refuses names of special files. The parser reports a missing flag.
func (c *keyCreateCommand) Validate() error {
	if c.Keyset == "" {
		return nil
	}
	if err := flags.CheckFileName(c.Keyset); err != nil {
		return fmt.Errorf("--keyset: %w", err)
	}
	return nil
}

// Run creates a keyset file.
func (c *keyCreateCommand) Run(ctx context.Context, messages *console.Messages) error {
	keyring, err := seal.CreateKeyring(ctx, c.Keyset)
	if err != nil {
		return err
	}
	keys, err := keyring.Current(ctx)
	if err != nil {
		return err
	}
	messages.Note("created key %d in %s; distribute the file to each replica and back it up: "+
		"without it, secrets cannot be decrypted", keys.IDs()[0], c.Keyset)
	return nil
}

type keyRotateCommand struct {
	flags.DatabaseFlags
}

// Help is the long help text.
func (keyRotateCommand) Help() string {
	return "Over SQLite, new secrets are encrypted with the new key at once, even by a running server. Over PostgreSQL, " +
		"distribute the file to each replica first, then run \"providerd key promote\"."
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
		printPrimaryKey(messages, id)
		return nil
	})
}

type keyPromoteCommand struct {
	flags.DatabaseFlags
}

// Run makes the newest key the primary key.
func (c *keyPromoteCommand) Run(ctx context.Context, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		id, err := database.PromoteKey(ctx)
		if err != nil {
			return err
		}
		printPrimaryKey(messages, id)
		if database.IsShared() {
			messages.Note("distribute the keyset file to each replica again, so that it knows the new primary key")
		}
		return nil
	})
}

func printPrimaryKey(messages *console.Messages, id uint32) {
	messages.Note("new secrets are encrypted with key %d; \"providerd key reseal\" re-encrypts old ones", id)
}

type keyResealCommand struct {
	flags.DatabaseFlags
}

// Run reseals old secrets until all are done or a signal arrives.
func (c *keyResealCommand) Run(ctx context.Context, messages *console.Messages) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return c.WithStore(ctx, func(database *store.Store) error {
		report := messages.Progress("secrets re-encrypted")
		err := database.Reseal(ctx, report.Update)
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("interrupted after %d of %d secrets; run the command again to continue", report.Done, report.Total)
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
	return "Run it after \"providerd key reseal\". The previous keyset is kept beside the new one, under a name that " +
		"ends in .retired- and the time: backups made before the reseal need it. A running server accepts the new file. " +
		"With replicas, each running one must have the keyset that \"providerd key promote\" wrote; distribute the new one " +
		"to them afterwards."
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
			messages.Note("no keys to retire: none is older than the primary key")
			return nil
		}
		messages.Note("retired %s", listKeys(retired.IDs))
		messages.Warn("backups made before the last \"providerd key reseal\" need keys that are now only in %s; "+
			"keep it as safe as the keyset, and as long as those backups", retired.Kept)
		if database.IsShared() {
			messages.Note("distribute the keyset file to each replica again")
		}
		return nil
	})
}

// shownKeys is the largest number of keys that are listed.
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
