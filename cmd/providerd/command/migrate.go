package command

import (
	"context"
	"errors"
	"log/slog"
	"strconv"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/database"
)

type migrateCommand struct {
	console.DatabaseFlags
	To console.Positive `placeholder:"VERSION" help:"Apply the migrations up to this schema version; none is undone."`
	console.ListFormat
}

// Help is the long help text.
func (migrateCommand) Help() string {
	return "Without --to, shows which migrations were applied. \"providerd serve\" migrates the database when it " +
		"starts. Run this before if your servers are not allowed to change tables. A PostgreSQL database may be empty; a " +
		"SQLite database is only created by \"providerd serve\"."
}

// Run shows or applies migrations.
func (c *migrateCommand) Run(ctx context.Context, out *console.Output, messages *console.Messages) error {
	if c.To == 0 {
		return c.show(ctx, out, messages)
	}
	logger := slog.New(slog.NewTextHandler(messages.File, &slog.HandlerOptions{Level: slog.LevelWarn}))
	before, err := c.Database.Migrate(ctx, logger, int64(c.To))
	if err != nil {
		return err
	}
	if before == int64(c.To) {
		messages.Note("the database already has schema version %d", before)
		return nil
	}
	messages.Note("migrated the database from schema version %d to %d", before, c.To)
	return nil
}

// shownMigration is a migration in JSON.
type shownMigration struct {
	Level int64  `json:"level"`
	Name  string `json:"name"`
	State string `json:"state"`
}

// show prints the migrations, and the schema versions on standard error.
func (c *migrateCommand) show(ctx context.Context, out *console.Output, messages *console.Messages) error {
	schema, err := c.schema(ctx)
	if err != nil {
		return err
	}
	migrations := console.List[shownMigration]{
		Headings: "LEVEL,MIGRATION,STATE",
		Rows: func(migration shownMigration) [][]string {
			return [][]string{{strconv.FormatInt(migration.Level, 10), migration.Name, migration.State}}
		},
	}
	if err := migrations.Print(out, messages, c.Output, console.Values(shownMigrations(schema)...)); err != nil {
		return err
	}
	messages.Note("the database has schema version %d, this program %d", schema.Version, schema.ProgramVersion())
	return nil
}

// schema reads the schema version of the database, 0 if it has no tables.
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
