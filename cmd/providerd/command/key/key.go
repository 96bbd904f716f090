// Package key implements "providerd key", which manages the keys that encrypt secrets at rest.
package key

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/files"
	"example.com/providerd/store/keyset"
	"example.com/providerd/store/seal"
)

// Commands has the commands of "providerd key".
type Commands struct {
	Create createCommand `cmd:"" synonyms:"add new" usage:"--keyset=PATH [--add=FILE | --drop=FILE] [flags]" help:"Create the keyset file of a PostgreSQL database, or a modified copy of a keyset file."`
	List   listCommand   `cmd:"" aliases:"ls" help:"List the data keys of the database and the master keys of the keyset file."`
	Rotate rotateCommand `cmd:"" synonyms:"add new" help:"Add a data key, which encrypts new secrets."`
	Reseal resealCommand `cmd:"" help:"Re-encrypt older secrets with the newest data key, and remove keys that no secret needs."`
	Rewrap rewrapCommand `cmd:"" help:"Encrypt the data keys with the primary master key of the keyset file."`
}

type createCommand struct {
	Keyset string `required:"" env:"PROVIDERD_KEYSET" type:"path" placeholder:"PATH" help:"The file to create, readable only by its owner (${env})."`
	Add    string `type:"path" xor:"from" placeholder:"FILE" help:"Copy the master keys of this keyset file, and add a new primary master key."`
	Drop   string `type:"path" xor:"from" placeholder:"FILE" help:"Copy only the primary master key of this keyset file."`
}

// Run creates a keyset file.
func (c *createCommand) Run(messages *console.Messages) error {
	keys, owner, err := c.keys()
	if err != nil {
		return err
	}
	err = keys.Create(c.Keyset, owner)
	switch {
	case errors.Is(err, fs.ErrExist) && c.Add+c.Drop != "":
		return fmt.Errorf("%w, then rename the new file", err)
	case err != nil:
		return err
	case c.Add != "":
		messages.Note("added master key %d in %s; replace the keyset of each replica with this file, then run "+
			"\"providerd key rewrap\"", keys.PrimaryID(), c.Keyset)
	case c.Drop != "":
		messages.Note("%s has only master key %d; use it once \"providerd key list\" shows that this key is in use, and "+
			"keep a copy of %s as long as you keep older backups", c.Keyset, keys.PrimaryID(), c.Drop)
	default:
		messages.Note("created master key %d in %s; distribute the file to each replica and back it up: "+
			"without it, secrets cannot be decrypted", keys.PrimaryID(), c.Keyset)
	}
	return nil
}

// keys returns the master keys of the new file, and its owner if root runs the command: that of the file that the keys
// come from, or else of the directory, who could have put another keyset there anyway.
func (c *createCommand) keys() (keys *seal.MasterKeys, owner files.Owner, err error) {
	if c.Add == "" && c.Drop == "" {
		if owner, err = files.OwnerFor(c.Keyset); err != nil {
			return nil, owner, err
		}
		keys, err = seal.NewMasterKeys()
		return keys, owner, err
	}
	path := c.Add + c.Drop
	file, err := os.Stat(path)
	if err != nil {
		return nil, owner, fmt.Errorf("read the keyset to copy: %w", err)
	}
	owner = files.OwnerOf(file)
	from, err := seal.ReadMasterKeys(path)
	switch {
	case err != nil:
	case c.Add != "":
		keys, err = from.WithNew()
	case len(from.IDs()) == 1:
		err = fmt.Errorf("%s contains only its primary master key, so there is none to drop", path)
	default:
		keys, err = from.OnlyPrimary()
	}
	return keys, owner, err
}

type listCommand struct{ console.ListFlags }

// Run lists the keys.
func (c *listCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	keys := console.List[keyset.Key]{Headings: "KIND,ID,CREATED,SECRETS,IN USE", Rows: rowsOf}
	return c.WithStore(ctx, func(database *store.Store) error {
		list, err := database.Keys.List(ctx)
		if err != nil {
			return err
		}
		return keys.Print(out, messages, c.Output, console.Values(list...))
	})
}

func rowsOf(key keyset.Key) [][]string {
	row := []string{key.Kind, fmt.Sprint(key.ID), "", "", ""}
	if key.CreatedAt != nil {
		row[2] = console.Timestamp(key.CreatedAt.Time)
	}
	if key.Secrets != nil {
		row[3] = fmt.Sprint(*key.Secrets)
	}
	if key.InUse {
		row[4] = "yes"
	}
	return [][]string{row}
}

type rotateCommand struct{ console.DatabaseFlags }

// Run adds a key.
func (c *rotateCommand) Run(ctx context.Context, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		id, err := database.Keys.Rotate(ctx)
		if err == nil {
			messages.Note("new secrets are encrypted with data key %d; \"providerd key reseal\" re-encrypts old ones", id)
		}
		return err
	})
}

type resealCommand struct{ console.DatabaseFlags }

// Help is the long help text.
func (resealCommand) Help() string {
	return "A server can keep running. When all secrets are re-encrypted, the data keys that no secret needs are " +
		"removed from the database. Backups contain the keys that they need."
}

// Run reseals old secrets until all are done or a signal arrives.
func (c *resealCommand) Run(ctx context.Context, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		ctx, stop := console.UntilInterrupted(ctx)
		defer stop()
		report := messages.Progress("secrets re-encrypted")
		removed, err := database.Keys.Reseal(ctx, report.Update)
		switch {
		case errors.Is(err, context.Canceled):
			return fmt.Errorf("interrupted after %d of %d secrets; run \"providerd key reseal\" to continue",
				report.Done, report.Total)
		case err != nil && !errors.Is(err, store.ErrDamaged):
			return err
		case report.Total == 0 && removed == 0:
			messages.Note("all secrets use the newest data key; to replace it, first run \"providerd key rotate\"")
			return err
		}
		report.Report()
		if removed > 0 {
			messages.Note("removed %s that no secret needs", console.Count(removed, "data key"))
		}
		return err
	})
}

type rewrapCommand struct{ console.DatabaseFlags }

// Help is the long help text.
func (rewrapCommand) Help() string {
	return "First distribute the keyset file with the new key, which \"providerd key create --add\" writes, to each " +
		"replica. Each server then rereads its keyset file, and refuses creates while the file lacks the new key."
}

// Run encrypts the data keys with another master key.
func (c *rewrapCommand) Run(ctx context.Context, messages *console.Messages) error {
	return c.WithStore(ctx, func(database *store.Store) error {
		id, err := database.Keys.Rewrap(ctx)
		if errors.Is(err, keyset.ErrRewrapped) {
			messages.Warn("nothing was changed: %v; first replace the keyset file with one that \"providerd key create "+
				"--add\" wrote, then run the command again", err)
			return nil
		}
		if err == nil {
			messages.Note("master key %d now encrypts the data keys; keep older ones as long as you keep older backups", id)
		}
		return err
	})
}
