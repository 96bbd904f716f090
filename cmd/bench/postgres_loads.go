package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"example.com/providerd/store"
	"example.com/providerd/store/postgres"
	"example.com/providerd/store/seal"
)

// pgbenchScript stores the same provider as load.lua, one per transaction.
//
//go:embed pgbench.sql
var pgbenchScript []byte

// postgresDatabase is a database with providerd's schema, a token that allows creates, and a directory for a keyset.
type postgresDatabase struct {
	url, dir, token string
}

func (d postgresDatabase) keyset() string { return filepath.Join(d.dir, "keyset.json") }

func createPostgres(ctx context.Context, url string) (database postgresDatabase, err error) {
	database.url = url
	if database.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return database, fmt.Errorf("create directory: %w", err)
	}
	if _, err := seal.ReadOrCreateMasterKeys(database.keyset()); err != nil {
		return database, err
	}
	opened, err := database.open(ctx)
	if err != nil {
		return database, err
	}
	database.token, _, err = opened.CreateToken(ctx, store.TokenGrant{
		Name: "bench", Operations: []string{"providers_oauth2_create"}, ExpiresIn: 24 * time.Hour,
	})
	return database, errors.Join(err, opened.Close())
}

// open opens the database as a replica does.
func (d postgresDatabase) open(ctx context.Context) (*store.Store, error) {
	parsed, err := postgres.ParseURL(d.url)
	if err != nil {
		return nil, err
	}
	opened, err := postgres.Create(ctx, parsed, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return store.Create(ctx, opened, d.keyset())
}

// loadPgbench stores one provider per transaction.
func loadPgbench(
	ctx context.Context, database postgresDatabase, connections int, duration time.Duration,
) (measured result, err error) {
	script := filepath.Join(database.dir, "pgbench.sql")
	if err := os.WriteFile(script, pgbenchScript, 0o600); err != nil {
		return result{}, fmt.Errorf("write script: %w", err)
	}
	// The warm-up is limited by transactions, because a time limit would include the time to connect.
	for _, length := range []string{"--transactions=50", fmt.Sprintf("--time=%.0f", duration.Seconds())} {
		output, err := exec.CommandContext(ctx, "pgbench", "--protocol=prepared", "--no-vacuum", "--file="+script, length,
			"--client="+strconv.Itoa(connections), "--jobs="+strconv.Itoa(min(connections, runtime.NumCPU())), database.url).Output()
		if err != nil {
			return result{}, fmt.Errorf("run pgbench (from Debian's package postgresql): %w", err)
		}
		found := regexp.MustCompile(`(?s)failed transactions: 0 .*tps = ([0-9.]+)`).FindSubmatch(output)
		if found == nil {
			return result{}, fmt.Errorf("unexpected output of pgbench: %s", output)
		}
		if measured.Requests, err = strconv.ParseFloat(string(found[1]), 64); err != nil {
			return result{}, fmt.Errorf("read the result of pgbench: %w", err)
		}
		measured.Microseconds = 1e6
	}
	return measured, nil
}

// loadStore creates records without HTTP, from one goroutine per connection.
func loadStore(
	ctx context.Context, database postgresDatabase, connections int, duration time.Duration,
) (measured result, err error) {
	opened, err := database.open(ctx)
	if err != nil {
		return result{}, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	for _, lasts := range []time.Duration{time.Second, duration} {
		var count atomic.Int64
		started := time.Now()
		group, ctx := errgroup.WithContext(ctx)
		for range connections {
			group.Go(func() error {
				for time.Since(started) < lasts {
					if err := createOne(ctx, opened, count.Add(1)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return result{}, fmt.Errorf("load the store: %w", err)
		}
		measured = result{Requests: float64(count.Load()), Microseconds: float64(time.Since(started).Microseconds())}
	}
	return measured, nil
}

// createOne creates what load.lua does, with the defaults that the server fills in.
func createOne(ctx context.Context, opened *store.Store, number int64) error {
	_, _, err := opened.CreateOAuth2Provider(ctx, store.CreateRequest{
		Name: fmt.Sprintf("bench %d", number), CreatedBy: "bench", RequestID: store.RandomAlphanumeric(26), RemoteAddress: "127.0.0.1",
	}, store.OAuth2Settings{
		AuthorizationFlow: uuid.New(), PropertyMappings: []uuid.UUID{}, ClientType: "confidential",
		ClientID: store.RandomAlphanumeric(40), ClientSecret: store.NewSecret(store.RandomAlphanumeric(128)),
		AccessCodeValidity: "minutes=1", AccessTokenValidity: "hours=1", RefreshTokenValidity: "days=30",
		IncludeClaimsInIDToken: true, RedirectURIs: fmt.Sprintf("https://app%d.example.com/callback", number),
		SubMode: "user_uuid", IssuerMode: "per_provider", JWKSSources: []uuid.UUID{},
	})
	return err
}
