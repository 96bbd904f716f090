package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/store"
	"example.com/providerd/store/files"
)

const (
	initialTokenName = "initial"
	initialTokenDays = 90
)

// ensureInitialToken creates a token for the operations if a SQLite database has none, and tells the operator where it
// is, but not the token itself. It never creates one for PostgreSQL: replicas share no directory to write it to.
func (c *Command) ensureInitialToken(
	ctx context.Context, database *store.Store, operations []string, log *serveLog,
) error {
	exist, err := database.HasTokens(ctx)
	if err != nil || exist {
		return err
	}
	dir := c.Database.Dir()
	if dir == "" {
		log.messages.Warn("the database has no access token; create one with \"providerd token create\"")
		return nil
	}
	path := filepath.Join(dir, console.InitialTokenFile)
	err = createInitialToken(ctx, database, path, operations)
	if errors.Is(err, store.ErrTokensExist) {
		// Another server was faster.
		return nil
	}
	if err == nil {
		log.messages.Note(`wrote an access token to %s; it allows all operations and expires in %d days; create `+
			`others with "providerd token create"`, path, initialTokenDays)
	}
	return err
}

// createInitialToken creates a token unless the database has one, and writes it to the file at path, which gets the
// owner of its directory even when root starts the server.
func createInitialToken(ctx context.Context, database *store.Store, path string, operations []string) error {
	grant := store.TokenGrant{Name: initialTokenName, Operations: operations, ExpiresIn: initialTokenDays * console.Day}
	return files.WithLock(ctx, filepath.Dir(path), func() error {
		return database.CreateFirstToken(ctx, grant, func(text string) error {
			owner, err := files.OwnerFor(path)
			if err != nil {
				return err
			}
			// What is there belongs to an earlier database.
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove the earlier token: %w", err)
			}
			return files.Create(path, owner, func(to io.Writer) error {
				_, err := io.WriteString(to, text+"\n")
				return err //nolint:wrapcheck // The caller names the file.
			})
		})
	})
}
