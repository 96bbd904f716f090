package command

import (
	"context"
	"errors"
	"log/slog"
	"strconv"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store/database"
)

type migrateCommand struct {
	flags.DatabaseFlags
	Status bool     `required:"" xor:"what" help:"Show the migrations, and which of them the database has."`
	To     positive `required:"" xor:"what" placeholder:"LEVEL" help:"Migrate to this level. Those that the database has are passed over; none is taken back."`
	flags.ListFormat
}

// Help is the long help text.
func (migrateCommand) Help() string {
	return "\"providerd serve\" migrates to the level of its program whenever it starts. This does so before, for those " +
		"who let no server change tables, and takes the same turns. A PostgreSQL database may be empty; a SQLite database " +
		"is made by \"providerd serve\" alone."
}

// Run shows the migrations, or makes them.
func (c *migrateCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	if c.Status {
		return c.show(ctx, out, messages)
	}
	logger := slog.New(slog.NewTextHandler(messages.File, &slog.HandlerOptions{Level: slog.LevelWarn}))
	before, err := c.Database.Migrate(ctx, logger, int64(c.To))
	if err != nil {
		return err
	}
	if before == int64(c.To) {
		messages.Note("the database has level %d already", before)
		return nil
	}
	messages.Note("migrated the database from level %d to %d", before, c.To)
	return nil
}

// shownMigration is a migration that this program or the database has.
type shownMigration struct {
	Level int64  `json:"level"`
	Name  string `json:"name"`
	State string `json:"state"`
}

// show prints the migrations, and on standard error what follows from them.
func (c *migrateCommand) show(ctx context.Context, out *console.Output, messages *console.Messages) error {
	schema, err := c.schema(ctx)
	if err != nil {
		return err
	}
	migrations := console.List[shownMigration]{
		Headings: "LEVEL,MIGRATION,STATE",
		Rows: func(one shownMigration) [][]string {
			return [][]string{{strconv.FormatInt(one.Level, 10), one.Name, one.State}}
		},
		Value: func(one shownMigration) any { return one },
	}
	if err := migrations.Print(out, messages, c.Output, console.Values(shownMigrations(schema)...)); err != nil {
		return err
	}
	messages.Note("the database has level %d, this program level %d", schema.Version, schema.ProgramVersion())
	return nil
}

// schema reads how far the database is. One without tables has level 0.
func (c *migrateCommand) schema(ctx context.Context) (database.Schema, error) {
	view, err := c.Database.OpenReadOnly(ctx)
	if err != nil {
		return database.Schema{}, err
	}
	schema, err := view.Schema(ctx)
	if errors.Is(err, database.ErrNoDatabase) {
		err = nil
	}
	return schema, errors.Join(err, view.Close())
}

func shownMigrations(schema database.Schema) []shownMigration {
	var shown []shownMigration
	for _, known := range schema.Known {
		state := "applied"
		if known.Version > schema.Version {
			state = "pending"
		}
		shown = append(shown, shownMigration{Level: known.Version, Name: known.Name, State: state})
	}
	if schema.Version > schema.ProgramVersion() {
		shown = append(shown, shownMigration{Level: schema.Version, State: "applied by a newer program"})
	}
	return shown
}
