package data

import (
	"context"
	"errors"
	"log/slog"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store/database"
)

// Migrate has the flags of "providerd migrate".
type Migrate struct{ console.DatabaseFlags }

// Help is the long help text.
func (Migrate) Help() string {
	return "\"providerd serve\" migrates the database when it starts. Run this first if your servers are not allowed " +
		"to change tables. A PostgreSQL database may be empty; a SQLite database is created only by \"providerd serve\"."
}

// Run migrates the database to the schema version of this program.
func (c *Migrate) Run(ctx context.Context, messages *console.Messages) error {
	view, err := c.Database.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	schema, err := view.Schema(ctx)
	if errors.Is(err, database.ErrNoDatabase) {
		// It has no tables yet, and the version 0.
		err = nil
	}
	if err = errors.Join(err, view.Close()); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(messages.File, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := c.Database.Migrate(ctx, logger); err != nil {
		return err
	}
	if schema.Version >= schema.Program {
		messages.Note("the database already has schema version %d", schema.Version)
		return nil
	}
	messages.Note("migrated the database from schema version %d to %d", schema.Version, schema.Program)
	return nil
}
