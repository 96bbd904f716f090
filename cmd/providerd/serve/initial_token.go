package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-isatty"

	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
	"example.com/providerd/store/files"
)

const (
	initialTokenName = "initial"
	initialTokenDays = 90
)

// ensureInitialToken creates a token for the operations if a SQLite database has none, and reports to the operator
// where it is, or how to create another one. It never creates one for PostgreSQL: replicas share no directory to write
// it to.
func (c *Command) ensureInitialToken(
	ctx context.Context, database *store.Store, operations []string, baseURL string, log *serveLog,
) error {
	exist, err := database.HasTokens(ctx)
	if err != nil {
		return err
	}
	dir := c.Database.Dir()
	if !exist && dir != "" {
		path := filepath.Join(dir, flags.InitialTokenFile)
		created, err := createInitialToken(ctx, database, path, operations)
		if err != nil {
			return err
		}
		if created {
			announceToken(log, path, baseURL)
			return nil
		}
		exist = true
	}
	command := c.tokenCommand()
	if exist {
		log.notify(slog.LevelInfo, "to create an access token, run: "+command, "access tokens exist",
			slog.String("create_command", command))
	} else {
		log.notify(slog.LevelWarn, "the database has no access token; to create one, run: "+command, "no access token exists",
			slog.String("create_command", command))
	}
	return nil
}

// tokenCommand returns the command that creates a token in the server's database.
func (c *Command) tokenCommand() string {
	quote := func(value string) string { return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'" }
	command := "providerd token create --name NAME --allow all"
	if c.Database.Postgres().HasPassword() {
		// The URL came from the environment: flags with a password are refused.
		command = "PROVIDERD_DATABASE=URL " + command
	} else if c.Database.Text != flags.DefaultDatabase {
		command += " --database " + quote(c.Database.Text)
	}
	if c.Keyset != "" {
		command += " --keyset " + quote(c.Keyset)
	}
	return command
}

// createInitialToken creates a token if the database has none, and writes it to the file at path, which gets the owner
// of its directory even when root starts the server. It reports whether it created one: another server may have been
// faster.
func createInitialToken(
	ctx context.Context, database *store.Store, path string, operations []string,
) (bool, error) {
	grant := store.TokenGrant{Name: initialTokenName, Operations: operations, ExpiresIn: initialTokenDays * flags.Day}
	err := files.WithLock(ctx, filepath.Dir(path), func() error {
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
	if errors.Is(err, store.ErrTokensExist) {
		return false, nil
	}
	return err == nil, err
}

// announceToken tells the operator where the initial token is and, on a terminal, how to use it. It never shows the
// token itself.
func announceToken(log *serveLog, path, baseURL string) {
	text := fmt.Sprintf("wrote an access token to %s; it allows all operations and expires in %d days",
		path, initialTokenDays)
	if isatty.IsTerminal(os.Stderr.Fd()) {
		text += "\n" + fmt.Sprintf(curlExample, baseURL, path)
	}
	log.notify(slog.LevelInfo, text, "wrote initial token",
		slog.String("path", path), slog.Int("valid_days", initialTokenDays))
}

const curlExample = `try it: curl -X POST %s/api/v3/providers/oauth2/ -H "Authorization: Bearer $(cat '%s')" ` +
	`-H 'Content-Type: application/json' ` +
	`-d '{"name": "Intranet", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}'`
