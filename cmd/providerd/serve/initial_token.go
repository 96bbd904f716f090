package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/mattn/go-isatty"

	"example.com/providerd/cmd/providerd/flags"
	"example.com/providerd/store"
	"example.com/providerd/store/durable"
)

const (
	initialTokenName = "initial"
	defaultLifetime  = 90 * flags.Day
)

// letIn provides the token of a first start in the folder of the database, and tells a newcomer so. The replicas of a
// database on a server have no folder in common.
func letIn(
	ctx context.Context, database *store.Store, operations []string, folder, baseURL string, log *serveLog,
) error {
	if folder == "" {
		return remindOfTokens(ctx, database, log)
	}
	path := filepath.Join(folder, flags.InitialTokenFile)
	made, err := provideInitialToken(ctx, database, path, operations)
	if made {
		introduce(log, path, baseURL)
	}
	return err
}

func remindOfTokens(ctx context.Context, database *store.Store, log *serveLog) error {
	exist, err := database.HasTokens(ctx)
	if err == nil && !exist {
		log.say(slog.LevelWarn, "the database has no token yet: \"providerd token create\" makes one")
	}
	return err
}

// provideInitialToken makes a token that allows the operations where the database has none, and writes it to the
// file at path, which root gives to the owner of its folder, like the database beside it. The token itself is never
// shown. It tells whether it made one.
func provideInitialToken(
	ctx context.Context, database *store.Store, path string, operations []string,
) (bool, error) {
	if exist, err := database.HasTokens(ctx); err != nil || exist {
		return false, err
	}
	grant := store.TokenGrant{Name: initialTokenName, Operations: operations, ExpiresIn: defaultLifetime}
	err := durable.WithLock(ctx, filepath.Dir(path), func() error {
		return database.CreateFirstToken(ctx, grant, func(text string) error {
			owner, err := durable.OwnerFor(path)
			if err != nil {
				return err
			}
			return durable.WriteFile(path, []byte(text+"\n"), owner)
		})
	})
	if errors.Is(err, store.ErrTokensExist) {
		return false, nil
	}
	return err == nil, err
}

// introduce tells a newcomer where the token is, and in a terminal how to use it.
func introduce(log *serveLog, path, baseURL string) {
	sentence := "wrote an access token for both operations, valid for 90 days, to " + path
	if isatty.IsTerminal(os.Stderr.Fd()) {
		sentence += "\n" + fmt.Sprintf(tryIt, baseURL, path)
	}
	log.say(slog.LevelInfo, sentence)
}

const tryIt = `try it: curl -X POST %s/api/v3/providers/oauth2/ -H "Authorization: Bearer $(cat '%s')" ` +
	`-H 'Content-Type: application/json' ` +
	`-d '{"name": "Intranet", "authorization_flow": "3f6e1c1a-5a0f-4d3c-9a54-6b8c2f7d9e01"}'`
