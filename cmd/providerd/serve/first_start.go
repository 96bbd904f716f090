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
	"example.com/providerd/store/seal"
	"example.com/providerd/store/sqlite"
	"example.com/providerd/store/token"
)

// createStore opens the server's store, and creates a SQLite database that does not exist. It then tells the operator,
// who may have lost the previous one.
func createStore(ctx context.Context, f console.DatabaseFlags, log *serveLog) (*store.Store, error) {
	// The keyset of a new database is created after the database, so one that exists now is older.
	_, err := os.Stat(f.KeysetPath())
	hadKeyset := err == nil
	if f.Database.Path == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s; run \"providerd key create --keyset %s\" for an empty database, or copy the file "+
			"from another replica", seal.ErrNoKeyset, f.KeysetPath(), f.KeysetPath())
	}
	db, err := f.Database.Create(ctx, log.Logger, false)
	if err != nil {
		return nil, f.NameSource(err)
	}
	opened, err := store.Create(ctx, db, f.KeysetPath())
	if err != nil {
		return nil, f.NameSource(err)
	}
	if created, ok := db.(*sqlite.Database); ok && created.IsNew() {
		log.messages.Note("created the database %s with the keyset %s", f.Database.Path, f.KeysetPath())
		if hadKeyset {
			log.messages.Warn("the keyset %s is older than the new database; if %s was lost, stop the server and restore a "+
				"backup", f.KeysetPath(), f.Database.Path)
		}
	}
	return opened, nil
}

const (
	initialTokenName = "initial"
	initialTokenDays = 90
)

// ensureInitialToken creates a token for the operations if a SQLite database has none, and tells the operator where it
// is, but not the token itself. It never creates one for PostgreSQL: replicas share no directory to write it to.
func (c *Command) ensureInitialToken(
	ctx context.Context, database *store.Store, operations []string, log *serveLog,
) error {
	exist, err := database.Tokens.Exist(ctx)
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
	if errors.Is(err, token.ErrExist) {
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
	grant := token.Grant{Name: initialTokenName, Operations: operations, ExpiresIn: initialTokenDays * console.Day}
	return files.WithLock(ctx, filepath.Dir(path), func() error {
		return database.Tokens.CreateFirst(ctx, grant, func(text string) error {
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
